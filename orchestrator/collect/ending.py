"""What to tell the watcher on the target about an item whose time is up, and when.

The time is kept here and not there: a watchdog for every command cost more than most commands. If we are gone, so is
the watcher's standard input, and everything ends at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from gapline.orchestrator.collect.group import Group, allowed
from gapline.orchestrator.collect.reading import UnderWay, piece_number
from gapline.orchestrator.collect.shell import GIVE_UP_AFTER, KILL_AFTER
from gapline.orchestrator.inventory.host import Become

Order = tuple[float, str]
"""Seconds after the item has begun, and the line to send then."""


def orders(under_way: UnderWay, become: Become) -> Iterator[Order]:
    """For the innermost item: TERM for the child itself and then for all its processes, KILL, and up to give it up,
    without an end. Nothing for what only its lane can end.
    """
    piece, within = under_way.piece, under_way.within
    outer = piece_number(piece)
    tag, carriers, shell = f"{outer}.", f"h.{outer}.", ""
    seconds = allowed(piece, become) if within is None else allowed(within, Become.NONE)
    if within is not None and isinstance(piece, Group) and piece.container:
        inner = piece_number(within)
        tag, carriers, shell = f"{outer}.{inner}.", f"{outer}.h.{inner}.", f"{outer}."
    if seconds is None:
        return
    go_on = f"USR1 {shell}\n"
    yield seconds, go_on
    yield seconds + KILL_AFTER, f"TERM {tag}\n"
    yield seconds + KILL_AFTER, go_on
    yield seconds + 2 * KILL_AFTER, f"KILL {tag}\n"
    yield seconds + GIVE_UP_AFTER, f"KILL {carriers}\n"
    for late in count():  # a shell can miss a signal that comes together with the end of another child
        yield seconds + GIVE_UP_AFTER + late, go_on
