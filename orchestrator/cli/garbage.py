"""When objects that refer to each other in circles are looked for: not in a short command, now and then among hosts.

Looking costs time for every object there is. What imports make lives to the end, so that looking at it is in vain and
takes 30 ms of start-up. A host that is done leaves thousands of objects and most of a megabyte in circles.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OF_A_COMMAND = (1_000_000, 50, 50)
_OF_HOSTS = (300_000, 0, 0)
"""New objects between two looks: those of some hundred hosts. Every look goes further back than the one before, up to
everything, because the hosts that were under way at one look are done, and in the way, at the next."""


def hardly_looked_for() -> None:
    """For a whole command."""
    gc.set_threshold(*_OF_A_COMMAND)


@contextmanager
def looked_for_among_hosts() -> Iterator[None]:
    """While hosts come and go; what was there before is not looked at."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_OF_HOSTS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
