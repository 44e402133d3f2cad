r"""The framed output of a collecting script, parsed as it arrives.

On both streams ``\n@NONCE b NUMBER\n`` opens an item and ``\n@NONCE e NUMBER …\n`` closes it; on standard output
``\n@NONCE s NUMBER\n`` can stand before what the item wrote to standard error, and the end carries status, start and
end (seconds of the target's uptime) and optional flags: ``q`` nothing of this item goes to the stream standard error,
``t`` it was cut on the target; a replayed item also its problem, URL-quoted JSON. ``\n@NONCE z\n`` ends a stream.

The line feed before ``@`` belongs to the marker, so output without a final line feed and binary output survive exactly.
Whatever is not a valid marker in its place is data; data outside of items is noise, of which the beginning is kept for
messages. What may be the beginning of a marker is held back, and forgotten if the stream breaks off there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from gapline.orchestrator.transport.route import Stream

MARKER_LENGTH = 4096
NOISE_KEPT = 2048
ERR_KEPT = 16 * 1024
_BEGIN, _END = (2,), (5, 6, 7)  # words of a marker: kind, number; kind, number, status, start, end, flags, problem
_NONE: Mapping[int, Frames] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Frame:
    """What came for one item. `status` is the exit status or a word; None when the end never came."""

    number: int
    out: bytes
    err: bytes
    status: str | None
    seconds: float
    truncated: bool
    problem: str = ""  # told by a replay


Done = Callable[[Frame], None]


class Frames:
    """Parses both streams of one script; calls `done` for every item the moment it is complete.

    `limits` holds the bytes to keep of each item's output. An item in `inner` is a script within: its data goes to
    that parser, which knows another nonce, so nothing inside can speak for an item outside.
    """

    def __init__(self, nonce: str, limits: Mapping[int, int], done: Done, inner: Mapping[int, Frames] = _NONE) -> None:
        self._limits, self._done, self._inner = limits, done, inner
        self._records: dict[int, _Record] = {}
        self._out, self._err = _Side(nonce, Stream.OUT, self), _Side(nonce, Stream.ERR, self)
        self.marks = 0  # valid markers so far

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take the next piece of a stream, of any size."""
        (self._out if stream is Stream.OUT else self._err).feed(data)

    @property
    def complete(self) -> bool:
        """Both end marks were seen."""
        return self._out.ended and self._err.ended

    @property
    def current(self) -> int | None:
        """The item that is being read now, as far as standard output says."""
        record = self._out.record
        return record.number if record else None

    def noise(self, stream: Stream) -> bytes:
        """The beginning of what came outside of items."""
        return bytes((self._out if stream is Stream.OUT else self._err).noise)

    def partial(self) -> dict[int, Frame]:
        """What has arrived for items that are not complete."""
        return {number: record.frame() for number, record in self._records.items()}

    def is_within(self, number: int) -> bool:
        """Whether an item is a script within."""
        return number in self._inner

    def data(self, side: _Side, piece: bytes) -> None:
        """A piece of data in a stream: of the open item, or noise."""
        record = side.record
        if record is None:
            if len(side.noise) < NOISE_KEPT:
                side.noise += piece[: NOISE_KEPT - len(side.noise)]
        elif record.number in self._inner:
            self._inner[record.number].feed(side.stream, piece)
        else:
            record.add(Stream.ERR if side.complaints else side.stream, piece)

    def mark(self, side: _Side, words: list[bytes]) -> bool:
        """A marker line; False when it is none in this place, and therefore data."""
        kind, out = words[0], side.stream is Stream.OUT
        if side.ended:
            return False
        if kind == b"z":
            valid = len(words) == 1 and side.record is None
            side.ended = valid
        elif kind == b"s":
            valid = out and len(words) in _BEGIN and self._complain(side, words[1])
        elif kind == b"b":
            valid = len(words) in _BEGIN and side.record is None and self._open(side, words[1])
        else:
            valid = kind == b"e" and len(words) in (_END if out else _BEGIN) and self._close(side, words)
        self.marks += valid
        return valid

    def _open(self, side: _Side, word: bytes) -> bool:
        number = int(word) if word.isdigit() and len(word) < 10 else -1  # noqa: PLR2004
        if number in side.seen or not (number in self._limits or number in self._inner):
            return False
        side.seen.add(number)
        record = self._records.get(number)
        if record is None:
            record = self._records[number] = _Record(number, self._limits.get(number, 0))
        side.record = record
        return True

    def _complain(self, side: _Side, word: bytes) -> bool:
        record = side.record
        if record is None or side.complaints or word != b"%d" % record.number or record.number in self._inner:
            return False
        side.complaints = True
        return True

    def _close(self, side: _Side, words: list[bytes]) -> bool:
        record = side.record
        if record is None or words[1] != b"%d" % record.number:
            return False
        if side.stream is Stream.OUT:
            record.close(words)
            if record.quiet:
                self._err.seen.add(record.number)
        record.left -= 1
        side.record, side.complaints = None, False
        if record.left <= 0:
            del self._records[record.number]
            self._done(record.frame())
        return True


class _Side:
    """One stream: finds the markers in pieces of any size."""

    __slots__ = ("_frames", "_given", "_mark", "_rest", "complaints", "ended", "noise", "record", "seen", "stream")

    def __init__(self, nonce: str, stream: Stream, frames: Frames) -> None:
        self.stream, self._frames, self._mark = stream, frames, f"\n@{nonce} ".encode()
        self._rest = b""
        self._given = 0  # bytes at its beginning that were passed on already
        self.ended = False
        self.complaints = False  # what comes belongs to standard error
        self.record: _Record | None = None
        self.seen: set[int] = set()
        self.noise = bytearray()

    def feed(self, piece: bytes) -> None:
        data, start = self._rest + piece, 0
        while (at := data.find(self._mark, start)) >= 0:
            head = at + len(self._mark)
            end = data.find(b"\n", head, head + MARKER_LENGTH)
            if end < 0 and len(data) < head + MARKER_LENGTH:
                self._emit(data, start, at)
                self._keep(data, at)
                return
            if end < 0:  # no marker is that long
                self._emit(data, start, at + 1)
                start = at + 1
            else:
                start = self._line(data, start, at, end)
        keep = self._possible_mark(data, start)
        self._emit(data, start, keep)
        self._keep(data, keep)

    def _keep(self, data: bytes, start: int) -> None:
        """Hold back what may be the beginning of a marker. A script within waits for the line feed that ends one of its
        own: it gets that at once, and not again.
        """
        self._rest, given = data[start:], max(0, self._given - start)
        if self._rest == b"\n" and not given and self.record is not None and self._frames.is_within(self.record.number):
            self._given = 0
            self._emit(self._rest, 0, 1)
            given = 1
        self._given = given

    def _line(self, data: bytes, start: int, at: int, end: int) -> int:
        """Handle a marker-like line; where to go on. Its line feed can begin the next marker if it is data."""
        self._emit(data, start, at)
        if self._frames.mark(self, data[at + len(self._mark) : end].split(b" ")):
            return end + 1
        self._emit(data, at, end)
        return end

    def _possible_mark(self, data: bytes, start: int) -> int:
        """Where a marker may begin that has not arrived completely; the end if there is none."""
        at = data.rfind(b"\n", max(start, len(data) - len(self._mark) + 1))
        return at if at >= 0 and self._mark.startswith(data[at:]) else len(data)

    def _emit(self, data: bytes, start: int, end: int) -> None:
        start = max(start, self._given)
        if end > start:
            self._frames.data(self, data[start:end])


@dataclass(slots=True)
class _Record:
    """An item under way."""

    number: int
    limit: int
    left: int = 2  # streams that have not closed it
    quiet: bool = False
    status: str | None = None
    seconds: float = 0.0
    truncated: bool = False
    problem: str = ""
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)

    def add(self, stream: Stream, piece: bytes) -> None:
        kept, limit = (self.out, self.limit) if stream is Stream.OUT else (self.err, ERR_KEPT)
        room = limit - len(kept)
        if len(piece) > room:
            self.truncated = self.truncated or stream is Stream.OUT
            piece = piece[:room]
        kept += piece

    def close(self, words: list[bytes]) -> None:
        flags = words[5] if len(words) > 5 else b""  # noqa: PLR2004
        self.status = words[2].decode("ascii", "replace")
        self.seconds = _between(words[3], words[4])
        self.quiet = b"q" in flags
        self.truncated = self.truncated or b"t" in flags
        self.problem = words[6].decode("ascii", "replace") if len(words) > 6 else ""  # noqa: PLR2004
        self.left -= self.quiet

    def frame(self) -> Frame:
        return Frame(
            self.number, bytes(self.out), bytes(self.err), self.status, self.seconds, self.truncated, self.problem
        )


def _between(start: bytes, end: bytes) -> float:
    """Seconds between two uptimes; 0 when the target gave nonsense."""
    try:
        seconds = float(end) - float(start)
    except ValueError:
        return 0.0
    return round(seconds, 3) if 0 <= seconds < 1e9 else 0.0  # noqa: PLR2004  # also false for NaN
