"""What to tell the watcher on the target about an item whose time is up, and when.

The time is kept here and not there: a watchdog for every command cost more than most commands. If we are gone, so is
the watcher's standard input, and everything ends at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from gapline.orchestrator.collect.group import Batch, allowed
from gapline.orchestrator.collect.reading import UnderWay, piece_number
from gapline.orchestrator.collect.shell import KILL_AFTER
from gapline.orchestrator.inventory.host import Become

Order = tuple[float, str]
"""Seconds after the item has begun, and the line to send then."""


def orders(under_way: UnderWay, become: Become) -> Iterator[Order]:
    """TERM, then KILL, then up to give it up: for the innermost item, without an end. Nothing for what only its lane
    can end.
    """
    outer = piece_number(under_way.piece)
    if under_way.within is None:
        seconds, tag, carriers, shell = allowed(under_way.piece, become), f"{outer}.", f"h.{outer}.", ""
    else:
        inner = piece_number(under_way.within)
        seconds = allowed(under_way.within, Become.NONE)
        tag, carriers, shell = f"{outer}.{inner}.", f"{outer}.h.{inner}.", f"{outer}."
    if seconds is None or isinstance(under_way.piece, Batch):
        return
    yield seconds, f"TERM {tag}\n"
    yield seconds + KILL_AFTER, f"KILL {tag}\n"
    seconds += 2 * KILL_AFTER
    yield seconds, f"KILL {carriers}\n"
    while True:  # a shell can miss a signal that comes together with the end of another child
        yield seconds, f"USR1 {shell}\n"
        seconds += 1
