"""What one process read for several items is cut into what each would have given by itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapline.orchestrator.collect.batch import split
from gapline.orchestrator.collect.frames import Frame
from gapline.orchestrator.collect.group import Batch
from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.reader import SEPARATOR, batch
from gapline.orchestrator.model.source import File, Glob, Source, Stat

LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=4)


def of(*sources: Source) -> Batch:
    """A batch of them."""
    return Batch(90, tuple(enumerate(Item("h", source) for source in sources)))


def read(*sources: Source) -> dict[str, Frame]:
    """What the real program gives for each of them, by path or pattern."""
    line = batch(90, of(*sources).members)
    done = subprocess.run(["sh", "-c", f'_do() {{ shift; "$@"; }}\n{line}'], capture_output=True, check=False)
    whole = Frame(90, done.stdout, done.stderr, str(done.returncode), 0.5, truncated=False)
    return {item.source.key.partition(":")[2]: frame for item, frame in split(of(*sources), whole)}


def test_files_and_patterns(tmp_path: Path) -> None:
    """Each gets its own lines and complaints: also a file that a pattern matches too, one that imitates a separator,
    an empty one, an absent one and a directory.
    """
    (tmp_path / "0000:01:00.0").mkdir()
    contents = {"a": b"1\n2", "b": b"", "c": f"{SEPARATOR}:x\n\n{tmp_path}/a:y\n".encode(), "0000:01:00.0/x": b"\0\xff"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    paths = {name: f"{tmp_path}/{name}" for name in (*contents, "none", "0000:01:00.0")}
    found = read(
        Glob(f"{paths['a']} {tmp_path}/nothing*"), *map(File, paths.values()), Glob(f"{tmp_path}/*/x {paths['none']}")
    )
    assert found[paths["a"]].out == b"1\n2\n"
    assert found[paths["c"]].out == contents["c"]
    assert found[paths["0000:01:00.0/x"]].out == b"\0\xff\n"
    assert (found[paths["b"]].out, found[paths["b"]].status) == (b"", "0")
    assert "No such file" in found[paths["none"]].err.decode()
    assert "directory" in found[paths["0000:01:00.0"]].err.decode()
    several = found[f"{paths['a']} {tmp_path}/nothing*"]
    assert several.out == f"{paths['a']}:1\n{paths['a']}:2\n".encode()
    assert several.err.count(b"\n") == 1
    assert found[f"{tmp_path}/*/x {paths['none']}"].err.count(b"none") == 1


def test_metadata(tmp_path: Path) -> None:
    """The lines of `stat` are cut in the same way."""
    found = read(Stat("/dev/null /dev/nothing*"), Stat(f"{tmp_path}"), Stat("/nowhere"))
    assert [frame.out.count(b"\n") for frame in found.values()] == [1, 1, 0]
    assert [frame.err.count(b"\n") for frame in found.values()] == [1, 0, 1]


@given(files=st.lists(LINES, min_size=1, max_size=4))
def test_any_content(files: list[list[bytes]]) -> None:
    """Whatever the files hold, each gets back what stands in it."""
    sources = [File(f"/f{number}") for number in range(len(files))]
    separator = f"{SEPARATOR}:Linux\n".encode()
    out = b"".join(
        b"".join(f"{source.path}:".encode() + line + b"\n" for line in lines) + separator
        for source, lines in zip(sources, files, strict=True)
    )
    frames = [frame for _, frame in split(of(*sources), Frame(90, out, b"", "0", 0.0, truncated=False))]
    assert [frame.out for frame in frames] == [b"".join(line + b"\n" for line in lines) for lines in files]


@given(cut=st.integers(0, 120))
def test_what_is_cut_off_is_not_there(cut: int) -> None:
    """A member counts only when the separator behind it has come as a whole."""
    sources = (File("/f0"), File("/f1"))
    out = f"/f0:one\n{SEPARATOR}:Linux\n/f1:two\n{SEPARATOR}:Linux\n".encode()
    frames = [frame.out for _, frame in split(of(*sources), Frame(90, out[:cut], b"", None, 0.0, truncated=False))]
    assert frames in ([], [b"one\n"], [b"one\n", b"two\n"])
    assert len(frames) == out[:cut].count(f"{SEPARATOR}:Linux\n".encode())


@pytest.mark.parametrize("status", ["d", "a"])
def test_what_was_not_run_has_no_output(status: str) -> None:
    """A word instead of an exit status holds for all members."""
    frames = [frame for _, frame in split(of(File("/a"), File("/b")), Frame(90, b"x", b"", status, 0, truncated=False))]
    assert [(frame.number, frame.out, frame.status) for frame in frames] == [(0, b"", status), (1, b"", status)]


def test_limits_hold_for_each() -> None:
    """One big file does not take the others with it."""
    out = b"/a:" + b"x" * 50 + f"\n{SEPARATOR}:L\n/b:y\n{SEPARATOR}:L\n".encode()
    one, two = (
        frame for _, frame in split(of(File("/a", limit=10), File("/b")), Frame(90, out, b"", "0", 0, truncated=False))
    )
    assert (one.out, one.truncated) == (b"x" * 10, True)
    assert (two.out, two.truncated) == (b"y\n", False)
