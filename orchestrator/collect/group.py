"""What a script reads one after the other, what it reads at once, and how long each may take."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.shell import GIVE_UP_AFTER, KILL_AFTER
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.source import KIB, Command, File, Glob, Script, Source, Stat

SUDO_SECONDS = 10
"""Time-out for single files and patterns read through sudo; nobody but root could end such a reader."""

ENTER_SECONDS = 5
"""For entering a container."""

SHARED_SECONDS = 10
"""For all scripts that share a shell; then each is run by itself, with its own time."""

FILE_SECONDS = 0.25
"""For each item in a container that has no time-out of its own."""

DEFAULT_LIMIT = 256 * KIB
"""Sources that may be bigger than this, the default limit, are cut on the target too."""

_KERNEL_TREES = ("/proc/", "/sys/")
# Binary attributes, each seen in sysfs, and those of a process whose words end in NUL: read by themselves.
_BINARY_NAMES = frozenset(
    (
        "auxv",
        "bios",
        "cmdline",
        "config",
        "data",
        "descriptors",
        "edid",
        "eeprom",
        "environ",
        "nvmem",
        "raw",
        "rom",
        "vpd",
    )
)
_BINARY_PARTS = ("/resource", "/notes/", "/sections/", "/tables/", "/efivars/", "/of_node/")
# Where a read can wait for ever, or lead out of the kernel's own files.
_NOT_PLAIN = ("/sys/kernel/debug/", "/sys/kernel/tracing/", "/proc/kmsg", "/root/", "/cwd/", "/fd/")


@dataclass(frozen=True, slots=True)
class Group:
    """The items that one further shell reads: inside a container, or scripts of the host. Its own number is its first
    member's.
    """

    container: str  # empty on the host
    members: tuple[tuple[int, Item], ...]
    pieces: tuple[Piece, ...]  # what its own script reads one after the other; batches are numbered beyond the members

    @property
    def number(self) -> int:
        """The number of the frame around the whole group."""
        return self.members[0][0]

    @property
    def root(self) -> bool:
        """Whether only root gets an honest answer, from the host's scripts."""
        return self.members[0][1].source.root

    @property
    def seconds(self) -> int:
        """Time for everything inside."""
        if not self.container:
            return min(SHARED_SECONDS, max(seconds(item.source) for _, item in self.members))
        return ENTER_SECONDS + math.ceil(sum(_share(item.source) for _, item in self.members))


@dataclass(frozen=True, slots=True)
class Batch:
    """Items of the same kind that one process reads. Its number is beyond those of all items."""

    number: int
    members: tuple[tuple[int, Item], ...]

    @property
    def limit(self) -> int:
        """Bytes of output kept: those of all members, with what the process adds to each line."""
        return sum(item.source.limit for _, item in self.members) + 4096 * len(self.members)


_Single = tuple[int, Item] | Group
Piece = _Single | Batch
"""What a script reads one after the other: an item with its number, a group, or a batch."""


def arrange(items: Sequence[Item], become: Become, *, together: bool = True) -> tuple[Piece, ...]:
    """The items in their order: those inside one container together, where the first of them stands, and neighbours
    that one process can read as batches. After something hung, nothing is read `together`: then it hangs alone.
    """
    numbered = tuple(enumerate(items))
    inside: dict[str, list[tuple[int, Item]]] = {}
    for number, item in numbered:
        if item.enter is not None:
            inside.setdefault(item.enter, []).append((number, item))
    pieces: list[_Single] = []
    for number, item in numbered:
        if item.enter is None:
            pieces.append((number, item))
        elif inside[item.enter][0][0] == number:
            pieces.append(_inside(item.enter, tuple(inside[item.enter]), together=together))
    return tuple(_batched(tuple(_sharing(pieces, become)), become, len(items))) if together else tuple(pieces)


def _inside(container: str, members: tuple[tuple[int, Item], ...], *, together: bool) -> Group:
    """The group of a container. Who is in there is root, or is told that it is not."""
    batched = _batched(members, Become.NONE, members[-1][0] + 1) if together else members
    return Group(container, members, tuple(batched))


def _sharing(pieces: Sequence[_Single], become: Become) -> Iterator[_Single]:
    """The pieces, with neighbouring scripts of the host in groups."""
    for how, run in groupby(pieces, lambda piece: _shell(piece, become)):
        several = tuple(run)
        members = tuple(piece for piece in several if not isinstance(piece, Group))
        if how is None or len(members) < 2:  # noqa: PLR2004 - it takes two to share
            yield from several
        else:
            yield Group("", members, members)


def _shell(piece: _Single, become: Become) -> bool | None:
    """Whether root's or anybody's shell can be shared for it; None for what is no script, or may be big."""
    if isinstance(piece, Group) or not isinstance(source := piece[1].source, Script):
        return None
    if source.limit > DEFAULT_LIMIT or source.wakes_gpu or (source.root and become is Become.SUDO_READS):
        return None
    return source.root


def _batched(pieces: Sequence[_Single], become: Become, first: int) -> Iterator[Piece]:
    """The pieces, with neighbours in batches that are numbered from `first`."""

    def how_read(piece: _Single) -> tuple[str, bool] | None:
        return None if isinstance(piece, Group) else process(piece[1].source, become)

    for how, run in groupby(pieces, how_read):
        several = tuple(run)
        if how is None or len(several) == 1:
            yield from several
        else:
            yield Batch(first, tuple(piece for piece in several if not isinstance(piece, Group)))
            first += 1


def process(source: Source, become: Become = Become.NONE) -> tuple[str, bool] | None:
    """What sources must have in common to be read by one process: its program, and whether it must be root's."""
    if source.root and become is Become.SUDO_READS:
        return None
    match source:
        case Stat():
            return ("stat", source.root)
        case File(path=path) if _kernel_text(path):
            return ("grep", source.root)
        case Glob(pattern=pattern) if all(map(_kernel_text, pattern.split())):
            return ("grep", source.root)
    return None


@lru_cache(maxsize=4096)
def _kernel_text(path: str) -> bool:
    """Whether the kernel makes up the file, and as text: then it is regular, and no pipe that would be waited at."""
    if not path.startswith(_KERNEL_TREES) or any(part in path for part in (*_BINARY_PARTS, *_NOT_PLAIN)):
        return False
    return path == "/proc/cmdline" or path.rpartition("/")[2] not in _BINARY_NAMES


def inner_nonce(nonce: str, number: int) -> str:
    """The nonce of a group's own script. Who knows it learns nothing about the outer one."""
    return hashlib.sha256(f"{nonce} {number}".encode()).hexdigest()[:32]


def seconds(source: Source) -> int:
    """The time-out of a source, in whole seconds."""
    return max(1, math.ceil(source.timeout)) if isinstance(source, Command | Script) else SUDO_SECONDS


def allowed(piece: Piece, become: Become) -> float | None:
    """After how many seconds a piece is ended; None where nothing but its lane can be."""
    if isinstance(piece, Group):
        return piece.seconds
    if isinstance(piece, Batch):
        return None
    source = piece[1].source
    if source.root and become is Become.SUDO_READS:
        return sudo_wait(source)
    return seconds(source) if isinstance(source, Command | Script) else None


def sudo_wait(source: Source) -> int:
    """Sudo's child cannot be signalled by us, so its own time-out goes first."""
    return seconds(source) + KILL_AFTER + 1


def _share(source: Source) -> float:
    return seconds(source) + GIVE_UP_AFTER if isinstance(source, Command | Script) else FILE_SECONDS
