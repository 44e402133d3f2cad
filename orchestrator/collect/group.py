"""Which items one script within a container reads, and how long everything may take on the target."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.shell import KILL_AFTER
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.source import Command, Script, Source

SUDO_SECONDS = 10
"""Time-out for single files and patterns read through sudo; nobody but root could end such a reader."""

ENTER_SECONDS = 5
"""For entering a container."""

FILE_SECONDS = 0.25
"""For each item in a container that has no time-out of its own."""


@dataclass(frozen=True, slots=True)
class Group:
    """The items that are read inside one container, by their numbers. Its own number is its first member's."""

    container: str
    members: tuple[tuple[int, Item], ...]

    @property
    def number(self) -> int:
        """The number of the frame around the whole group."""
        return self.members[0][0]

    @property
    def seconds(self) -> int:
        """Time for everything inside."""
        return ENTER_SECONDS + math.ceil(sum(_share(item.source) for _, item in self.members))


Piece = tuple[int, Item] | Group
"""What a script reads one after the other: an item with its number, or a group."""


def arrange(items: Sequence[Item]) -> tuple[Piece, ...]:
    """The items in their order; those inside one container together, where the first of them stands."""
    inside: dict[str, list[tuple[int, Item]]] = {}
    for number, item in enumerate(items):
        if item.enter is not None:
            inside.setdefault(item.enter, []).append((number, item))
    pieces: list[Piece] = []
    for number, item in enumerate(items):
        if item.enter is None:
            pieces.append((number, item))
        elif inside[item.enter][0][0] == number:
            pieces.append(Group(item.enter, tuple(inside[item.enter])))
    return tuple(pieces)


def inner_nonce(nonce: str, number: int) -> str:
    """The nonce of a group's own script. Who knows it learns nothing about the outer one."""
    return hashlib.sha256(f"{nonce} {number}".encode()).hexdigest()[:32]


def seconds(source: Source) -> int:
    """The time-out of a source on the target, in whole seconds (old `sleep` knows no others)."""
    return max(1, math.ceil(source.timeout)) if isinstance(source, Command | Script) else SUDO_SECONDS


def longest(piece: Piece, become: Become) -> float | None:
    """After how many seconds the target itself gives the piece up; None where it has no time-out of its own."""
    if isinstance(piece, Group):
        return piece.seconds + 2 * KILL_AFTER
    source = piece[1].source
    if source.root and become is Become.SUDO_READS:
        return sudo_wait(source) + 2 * KILL_AFTER
    return seconds(source) + 2 * KILL_AFTER if _timed(source) else None


def sudo_wait(source: Source) -> int:
    """Sudo's child cannot be signalled by us, so its own time-out goes first."""
    return seconds(source) + KILL_AFTER + 1


def _share(source: Source) -> float:
    return seconds(source) + 2 * KILL_AFTER if _timed(source) else FILE_SECONDS


def _timed(source: Source) -> bool:
    return isinstance(source, Command | Script)
