"""The order of kernel versions."""

from __future__ import annotations

import re
from collections.abc import Iterable


def newest(versions: Iterable[str]) -> str | None:
    """The highest version, numbers compared as numbers: 6.8.12-10 is newer than 6.8.12-9; None of none."""
    return max(versions, key=_order, default=None)


def series(version: str) -> str:
    """The first two numbers: "6.14" of "6.14.11-4-pve"."""
    return ".".join(version.split(".")[:2])


def older(kernel: str, release: str) -> bool:
    """Whether the kernel is older than a release; one whose name is no number counts as new."""
    found = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", kernel, re.ASCII)
    wanted = tuple(int(part) for part in release.split("."))
    return found is not None and (int(found[1]), int(found[2])) < wanted


def _order(version: str) -> tuple[tuple[int, int, str], ...]:
    return tuple(
        (1, int(part[:18]), "") if part.isdigit() else (0, 0, part)
        for part in re.findall(r"[0-9]+|[a-z]+", version.lower(), re.ASCII)
    )
