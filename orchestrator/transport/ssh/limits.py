"""How many connections at once, and enough file descriptors for them."""

from __future__ import annotations

import contextlib
import resource
from collections import defaultdict
from collections.abc import Hashable

import anyio

_DESCRIPTORS = 16_384  # two per host and some per process; far below what kernels allow


def raise_descriptor_limit() -> int:
    """Raise the soft limit on open files as far as is useful and allowed; the limit that then holds.

    The usual 1,024 is the first thing that a large fleet runs into (asyncssh issues 284 and 573).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class Gates:
    """One gate per server, jump host or proxy: so many may be logging in through it at once."""

    def __init__(self, width: int) -> None:
        self._gates: defaultdict[Hashable, anyio.CapacityLimiter] = defaultdict(lambda: anyio.CapacityLimiter(width))

    def at(self, place: Hashable) -> anyio.CapacityLimiter:
        """The gate to use with `async with` around one login."""
        return self._gates[place]
