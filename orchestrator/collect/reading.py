"""The items of one script and what has come for them: from frames to captures, each delivered once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gapline.orchestrator.collect.diagnose import diagnose, exit_status, stderr
from gapline.orchestrator.collect.entry import container_problem
from gapline.orchestrator.collect.fill import shown
from gapline.orchestrator.collect.frames import Frame, Frames
from gapline.orchestrator.collect.group import Group, Piece, arrange, inner_nonce
from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.transport.route import Stream

Deliver = Callable[[Capture], None]


class Reading:
    """What is still to come, and the parser that waits for it."""

    def __init__(self, items: Sequence[Item], nonce: str, deliver: Deliver) -> None:
        self.pieces: tuple[Piece, ...] = arrange(items)
        self._pending = dict(enumerate(items))
        self._deliver = deliver
        limits = {number: item.source.limit for number, item in self._pending.items()}
        self._groups = {piece.number: piece for piece in self.pieces if isinstance(piece, Group)}
        self._inner = {
            number: Frames(inner_nonce(nonce, number), {one: limits[one] for one, _ in group.members}, self._done)
            for number, group in self._groups.items()
        }
        outer = {number: limit for number, limit in limits.items() if self._pending[number].enter is None}
        self.frames = Frames(nonce, outer, self._ended, self._inner)

    @property
    def rest(self) -> tuple[Item, ...]:
        """The items without a capture, in their order."""
        return tuple(self._pending.values())

    @property
    def current(self) -> Piece | None:
        """The piece that is being read: what standard output says, else the first one that is missing."""
        number = self.frames.current
        for piece in self.pieces:
            if number is not None and _number(piece) == number:
                return piece
            if number is None and any(member in self._pending for member, _ in _members(piece)):
                return piece
        return None

    def give_up(self, piece: Piece, problem: Problem, seconds: float = 0.0) -> None:
        """Deliver the rest of a piece with the problem and with what has arrived."""
        partial = self.frames.partial()
        if isinstance(piece, Group):
            partial = self._inner[piece.number].partial()
        for number, _ in _members(piece):
            if (item := self._pending.pop(number, None)) is not None:
                self._deliver(unfinished(item, problem, partial.get(number), seconds))

    def give_up_all(self, problem: Problem) -> None:
        """Deliver everything that is left with the problem and with what has arrived."""
        for piece in self.pieces:
            self.give_up(piece, problem)

    def _ended(self, frame: Frame) -> None:
        if (group := self._groups.get(frame.number)) is None:
            self._done(frame)
            return
        inner = self._inner[frame.number]
        said = inner.noise(Stream.ERR) or inner.noise(Stream.OUT)
        self.give_up(group, container_problem(group, frame, said, answered=inner.marks > 0), frame.seconds)

    def _done(self, frame: Frame) -> None:
        if (item := self._pending.pop(frame.number, None)) is not None:
            self._deliver(finished(item, frame))


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


def _number(piece: Piece) -> int:
    return piece.number if isinstance(piece, Group) else piece[0]


def _members(piece: Piece) -> Sequence[tuple[int, Item]]:
    return piece.members if isinstance(piece, Group) else (piece,)
