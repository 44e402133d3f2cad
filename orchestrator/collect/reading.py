"""The items of one script and what has come for them: from frames to captures, each delivered once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gapline.orchestrator.collect.batch import split
from gapline.orchestrator.collect.diagnose import diagnose, exit_status, root_needed, stderr
from gapline.orchestrator.collect.entry import container_problem
from gapline.orchestrator.collect.fill import shown
from gapline.orchestrator.collect.frames import Frame, Frames
from gapline.orchestrator.collect.group import Batch, Group, Piece, arrange, inner_nonce
from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.transport.route import Stream

Deliver = Callable[[Capture], None]


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The piece that is being read, and within a group the piece of its own script, if that has begun one."""

    piece: Piece
    within: Piece | None


class Reading:
    """What is still to come, and the parser that waits for it."""

    def __init__(
        self, items: Sequence[Item], nonce: str, deliver: Deliver, become: Become, *, together: bool = True
    ) -> None:
        self.pieces = arrange(items, become, together=together)
        self._pending = dict(enumerate(items))
        self._deliver = deliver
        self._groups = {piece.number: piece for piece in self.pieces if isinstance(piece, Group)}
        self._inner = {
            number: Frames(inner_nonce(nonce, number), _limits(group.pieces), self._receiver(group.pieces))
            for number, group in self._groups.items()
        }
        read_here = [piece for piece in self.pieces if not isinstance(piece, Group)]
        self._done = self._receiver(read_here)
        self.frames = Frames(nonce, _limits(read_here), self._ended, self._inner)

    @property
    def rest(self) -> tuple[Item, ...]:
        """The items without a capture, in their order."""
        return tuple(self._pending.values())

    @property
    def marks(self) -> int:
        """Valid markers so far, those from within containers too."""
        return self.frames.marks + sum(inner.marks for inner in self._inner.values())

    @property
    def under_way(self) -> UnderWay | None:
        """What is being read: what standard output says, else the first that is missing."""
        number = self.frames.current
        for piece in self.pieces:
            if number is not None and piece_number(piece) == number:
                return UnderWay(piece, self._within(piece))
            if number is None and any(member in self._pending for member, _ in members(piece)):
                return UnderWay(piece, None)
        return None

    def _within(self, piece: Piece) -> Piece | None:
        if not isinstance(piece, Group):
            return None
        number = self._inner[piece.number].current
        return next((one for one in piece.pieces if piece_number(one) == number), None)

    def give_up(self, piece: Piece, problem: Problem, seconds: float = 0.0) -> None:
        """Deliver the rest of a piece with the problem and with what has arrived."""
        frames = self._inner[piece.number] if isinstance(piece, Group) else self.frames
        partial = frames.partial()
        for one in piece.pieces if isinstance(piece, Group) else (piece,):
            if isinstance(one, Batch):
                self._take(one, frames)
            for number, _ in members(one):
                if (item := self._pending.pop(number, None)) is not None:
                    self._deliver(unfinished(item, problem, partial.get(number), seconds))

    def give_up_all(self, problem: Problem) -> None:
        """Deliver everything that is left with the problem and with what has arrived."""
        for piece in self.pieces:
            self.give_up(piece, problem)

    def take(self, batch: Batch) -> None:
        """Deliver the members of a batch of the host whose end has arrived, although that of the batch has not."""
        self._take(batch, self.frames)

    def _take(self, batch: Batch, frames: Frames) -> None:
        if (arrived := frames.partial().get(batch.number)) is not None:
            self._members_done(batch, arrived)

    def _receiver(self, pieces: Iterable[Piece]) -> Callable[[Frame], None]:
        batches = {piece.number: piece for piece in pieces if isinstance(piece, Batch)}

        def done(frame: Frame) -> None:
            if (batch := batches.get(frame.number)) is not None:
                self._members_done(batch, frame)
            elif (item := self._pending.pop(frame.number, None)) is not None:
                self._deliver(finished(item, frame))

        return done

    def _members_done(self, batch: Batch, frame: Frame) -> None:
        for item, part in split(batch, frame):
            if self._pending.pop(part.number, None) is not None:
                self._deliver(finished(item, part))

    def _ended(self, frame: Frame) -> None:
        if (group := self._groups.get(frame.number)) is None:
            self._done(frame)
            return
        inner = self._inner[frame.number]
        if not group.container:  # what it did not tell, because something ended it, is read once more
            if frame.status == "d":
                self.give_up(group, root_needed(), frame.seconds)
            return
        if inner.complete and any(isinstance(piece, Batch) for piece in group.pieces):
            return  # what a batch did not tell is read once more
        said = inner.noise(Stream.ERR) or inner.noise(Stream.OUT)
        self.give_up(group, container_problem(group, frame, said, answered=inner.marks > 0), frame.seconds)


def finished(item: Item, frame: Frame) -> Capture:
    """The capture of an item whose end was seen."""
    return Capture(
        item.target,
        item.source.key,
        shown(item),
        frame.out,
        stderr(frame),
        exit_status(frame),
        frame.seconds,
        frame.truncated,
        diagnose(item.source, frame),
    )


def unfinished(item: Item, problem: Problem, partial: Frame | None = None, seconds: float = 0.0) -> Capture:
    """The capture of an item that was not read, or not to its end."""
    out, err, cut = (partial.out, stderr(partial), partial.truncated) if partial else (b"", b"", False)
    return Capture(item.target, item.source.key, shown(item), out, err, None, round(seconds, 3), cut, problem)


def piece_number(piece: Piece) -> int:
    """The number of the frame around a piece."""
    return piece.number if isinstance(piece, Group | Batch) else piece[0]


def members(piece: Piece) -> Sequence[tuple[int, Item]]:
    """The items of a piece, with their numbers."""
    return piece.members if isinstance(piece, Group | Batch) else (piece,)


def _limits(pieces: Iterable[Piece]) -> dict[int, int]:
    """Bytes to keep by the number of a frame: a batch comes as one, or item by item from a snapshot."""
    limits: dict[int, int] = {}
    for piece in pieces:
        limits |= {number: item.source.limit for number, item in members(piece)}
        if isinstance(piece, Batch):
            limits[piece.number] = piece.limit
    return limits
