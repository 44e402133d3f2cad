"""Framed output: any split gives the same items, and nothing a target prints makes the parser fail."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from gapline.orchestrator.collect.frames import ERR_KEPT, MARKER_LENGTH, NOISE_KEPT, Frame, Frames
from gapline.orchestrator.transport.route import Stream

NONCE = "5f" * 16
MARK = b"\n@" + NONCE.encode() + b" "
INNER = "77" * 16
LIMIT = 64


def parse(out: list[bytes], err: list[bytes], limits: dict[int, int] | None = None) -> tuple[list[Frame], Frames]:
    """All frames of two streams that arrive in these pieces."""
    done: list[Frame] = []
    frames = Frames(NONCE, limits or {0: LIMIT, 1: LIMIT, 2: LIMIT}, done.append)
    for piece in out:
        frames.feed(Stream.OUT, piece)
    for piece in err:
        frames.feed(Stream.ERR, piece)
    return done, frames


def framed(number: int, data: bytes, tail: bytes) -> bytes:
    """One item on one stream."""
    return MARK + b"b %d\n" % number + data + MARK + b"e %d%s\n" % (number, tail)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data in pieces that end at these places."""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


PARTS = st.sampled_from(
    [
        *(MARK, MARK + b"b 1\n", MARK + b"e 0 0 1.0 2.0\n", MARK + b"e 0\n", MARK + b"z\n", b"\n", b"@", b"b 0", b" "),
        *(b"\0", b"\n@" + NONCE.encode()[:7], MARK[1:], MARK + b"b 99\n", MARK + b"b -1\n"),
        MARK + b"e 1 0 nan inf q\n",
    ]
)
HOSTILE = st.lists(st.one_of(PARTS, st.binary(max_size=40)), max_size=30).map(b"".join)
CUTS = st.lists(st.integers(min_value=0, max_value=5000), max_size=12)
HARMLESS = st.binary(max_size=LIMIT).filter(lambda data: b"\n@" not in data)


@settings(deadline=None)
@given(out=HOSTILE, err=HOSTILE, out_cuts=CUTS, err_cuts=CUTS)
def test_any_split_is_the_same(out: bytes, err: bytes, out_cuts: list[int], err_cuts: list[int]) -> None:
    """Pieces of any size give what the whole gives, for output of any kind."""
    whole, at_once = parse([out], [err])
    pieces, in_pieces = parse(split(out, out_cuts), split(err, err_cuts))
    assert pieces == whole
    assert in_pieces.complete == at_once.complete
    assert in_pieces.partial() == at_once.partial()
    assert in_pieces.noise(Stream.OUT) == at_once.noise(Stream.OUT)


@settings(deadline=None)
@given(
    noise=HARMLESS, datas=st.lists(HARMLESS, min_size=3, max_size=3), errs=st.lists(HARMLESS, min_size=3, max_size=3)
)
def test_round_trip(noise: bytes, datas: list[bytes], errs: list[bytes]) -> None:
    """What is framed comes back byte by byte, behind any noise, with or without a final line feed."""
    out = noise + b"".join(framed(n, data, b" %d 1.00 1.25" % n) for n, data in enumerate(datas)) + MARK + b"z\n"
    err = noise + b"".join(framed(n, data, b"") for n, data in enumerate(errs)) + MARK + b"z\n"
    done, frames = parse([out], [err])
    assert [(frame.out, frame.err, frame.status, frame.seconds) for frame in done] == [
        (data, error, str(n), 0.25) for n, (data, error) in enumerate(zip(datas, errs, strict=True))
    ]
    assert frames.complete
    assert frames.noise(Stream.OUT) == noise[:NOISE_KEPT]


def test_item_is_done_when_both_streams_say_so() -> None:
    """Standard output alone does not complete an item, since its errors may still be on their way."""
    done, frames = parse([framed(0, b"x", b" 0 1 1")], [])
    assert done == []
    frames.feed(Stream.ERR, framed(0, b"late", b""))
    assert done[0].err == b"late"


def test_quiet_item_needs_one_stream() -> None:
    """The flag q says that nothing comes on standard error."""
    done, _ = parse([framed(0, b"x\n", b" 0 1 1 q")], [])
    assert done == [Frame(0, b"x\n", b"", "0", 0.0, truncated=False)]


def test_too_long_output_is_cut_while_it_streams() -> None:
    """Memory stays at the limit, whatever comes; the markers behind it are still found."""
    done, frames = parse([MARK + b"b 0\n"], [MARK + b"b 0\n"])
    for _ in range(50):
        frames.feed(Stream.OUT, b"x" * 100_000)
        frames.feed(Stream.ERR, b"y" * 100_000)
    assert len(frames.partial()[0].out) == LIMIT
    frames.feed(Stream.OUT, MARK + b"e 0 0 1 1\n")
    frames.feed(Stream.ERR, MARK + b"e 0\n")
    assert done == [Frame(0, b"x" * LIMIT, b"y" * ERR_KEPT, "0", 0.0, truncated=True)]


def test_output_of_exactly_the_limit_is_whole() -> None:
    """The limit itself is still allowed."""
    done, _ = parse([framed(0, b"x" * LIMIT, b" 0 1 1 q"), framed(1, b"x" * (LIMIT + 1), b" 0 1 1 q")], [])
    assert [frame.truncated for frame in done] == [False, True]


def test_markers_of_others_and_out_of_place_are_data() -> None:
    """A wrong nonce, an unknown number, an end without a begin and an endless line are output like any other."""
    forged = b"\n@" + b"00" * 16 + b" e 0 0 1 1\n" + MARK + b"b 0\n" + MARK + b"e 2 0 1 1\n" + MARK + b"z\n"
    done, frames = parse([framed(0, forged, b" 0 1 1 q")], [], {0: 10_000, 1: LIMIT})
    assert done[0].out == forged
    long = MARK + b"e" + b"x" * (MARKER_LENGTH + 10) + b"\n"
    frames.feed(Stream.OUT, framed(1, long, b" 0 1 1 q"))
    assert done[1].out == long[:LIMIT]


def test_nothing_counts_after_the_end() -> None:
    """What a left-over process prints behind the end mark belongs to nothing."""
    done, frames = parse([MARK + b"z\n" + framed(0, b"x", b" 0 1 1 q")], [MARK + b"z\n"])
    assert frames.complete
    assert done == []


def test_script_within_speaks_for_its_own_items_only() -> None:
    """A container that knows its own nonce can neither end nor fill an item outside of it."""
    done: list[Frame] = []
    inner = Frames(INNER, {5: LIMIT}, done.append)
    outer = Frames(NONCE, {0: LIMIT, 6: LIMIT}, done.append, {5: inner})
    other = b"\n@" + INNER.encode() + b" "
    inside = other + b"b 5\nhello" + other + b"e 5 0 1 1 q\n" + other + b"b 0\nforged" + other + b"e 0 0 1 1 q\n"
    outer.feed(Stream.OUT, framed(5, inside, b" 0 1 9") + framed(0, b"true", b" 0 1 1 q"))
    outer.feed(Stream.ERR, framed(5, b"said", b""))
    assert [(frame.number, frame.out) for frame in done] == [(5, b"hello"), (0, b"true"), (5, b"")]
    assert inner.noise(Stream.ERR) == b"said"


def test_nonsense_times_are_zero() -> None:
    """A target's clock that is no number, runs backwards or is infinite gives no duration."""
    tails = [b" 0 x y q", b" 0 5 1 q", b" 0 nan 1 q", b" 0 1 inf q", b" 0 - - q"]
    out = [framed(n, b"", tail) for n, tail in enumerate(tails)]
    done, _ = parse(out, [], dict.fromkeys(range(len(tails)), 1))
    assert [frame.seconds for frame in done] == [0.0] * len(tails)


def test_standard_error_within_standard_output() -> None:
    """What stands behind the marker s was said on standard error; it counts once, and for the open item only."""
    other = MARK + b"s 1\n"
    done, _ = parse([framed(0, b"out\n" + other + MARK + b"s 0\n" + b"err\n" + MARK + b"s 0\n", b" 1 1 1 q")], [])
    assert done == [Frame(0, b"out\n" + other, b"err\n" + MARK + b"s 0\n", "1", 0.0, truncated=False)]
    assert parse([framed(0, MARK + b"s 0\nerr", b" 1 1 1 q")], [])[0][0].err == b"err"


@given(cuts=st.lists(st.integers(0, 10_000), max_size=30))
def test_script_within_is_heard_at_once(cuts: list[int]) -> None:
    """However the stream is cut: what has begun inside is known as soon as its marker has come, and nothing twice."""
    other = b"\n@" + INNER.encode() + b" "
    inside = [
        other + b"b 5\n",
        b"\n\n@x\n",
        other + b"e 5 0 1 1 q\n",
        other + b"b 6\n",
        b"\n",
        other + b"e 6 0 1 1 q\n",
    ]
    stream = framed(5, b"".join(inside) + other + b"z\n", b" 0 1 9 q")
    done: list[Frame] = []
    inner = Frames(INNER, {5: LIMIT, 6: LIMIT}, done.append)
    outer = Frames(NONCE, {}, done.append, {5: inner})
    fed = b""
    for piece in split(stream, cuts):
        outer.feed(Stream.OUT, piece)
        fed += piece
        begun = [n for n in (5, 6) if other + b"b %d\n" % n in fed and other + b"e %d 0 1 1 q\n" % n not in fed]
        assert ([inner.current] if inner.current is not None else []) == begun
    assert [(frame.number, frame.out) for frame in done] == [(5, b"\n\n@x\n"), (6, b"\n"), (5, b"")]
