"""When objects that refer to each other in circles are looked for: not in a short command, now and then among hosts.

Looking costs time for every object there is. What imports make lives to the end, so that looking at it is in vain and
takes 30 ms of start-up. A host that is done leaves thousands of objects and most of a megabyte in circles; older ones
hold on to younger ones, so that looking at the young alone, as Python does most of the time, finds nothing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gapline.orchestrator.audit.progress import Event, Observe

_NEW_OBJECTS = 1_000_000  # more than any command makes before it meets hosts
_HOSTS = 150  # 120 MB of big ones


def hardly_looked_for() -> None:
    """For a whole command."""
    gc.set_threshold(_NEW_OBJECTS, 50, 50)


@contextmanager
def looked_for_among_hosts(observe: Observe) -> Iterator[Observe]:
    """An observer that looks whenever so many more hosts are done, and not at what was there before."""
    from gapline.orchestrator.audit.progress import HostFinished

    done = 0

    def looking(event: Event) -> None:
        nonlocal done
        observe(event)
        done += isinstance(event, HostFinished)
        if done == _HOSTS:
            done = 0
            gc.collect()

    was_enabled = gc.isenabled()
    gc.freeze()
    gc.disable()
    try:
        yield looking
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
