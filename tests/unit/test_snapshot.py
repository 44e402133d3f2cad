"""A snapshot on disk: what is written comes back, edits count, and nothing damaged or hostile is trusted."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import SnapshotError
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.snapshot import SnapshotWriter, read
from gapline.orchestrator.snapshot.layout import file_name, folder

CREATED = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
CAPTURES = [
    Capture("pve1", "file:/proc/version", "/proc/version", b"Linux\n", seconds=0.25),
    Capture("pve1", "file:/proc/cpuinfo", "/proc/cpuinfo", b"processor\t: 0\n" * 500),
    Capture("pve1", "file:/sys/config", "/sys/config", bytes(range(256))),
    Capture("pve1", "command:nvidia-smi -q", "nvidia-smi -q", b"part", b"err \xc3\xa9\n", 137, 20.0, truncated=True,
            problem=Problem(kind=ProblemKind.TIMED_OUT, detail="did not end", hint="look")),
    Capture("pve1", "script:x", "x", exit=None, problem=Problem(kind=ProblemKind.DENIED, detail="no")),
]  # fmt: skip


def write(path: Path, captures: list[Capture] | None = None) -> Path:
    """A finished snapshot of one host and one container."""
    writer = SnapshotWriter(path, version="1.2", created=CREATED, synthetic=True)
    writer.write("pve1", CAPTURES if captures is None else captures, {"boot_id": "x", "load": [1, 2]})
    writer.write("pve1/129", [Capture("pve1/129", "inside:file:/x", "/x", b"in\n")])
    writer.finish()
    return path


def test_round_trip(tmp_path: Path) -> None:
    """Every field of every capture, what is known about a target, and the manifest."""
    snapshot = read(write(tmp_path / "s"))
    assert list(snapshot.captures("pve1").values()) == CAPTURES
    assert snapshot.captures("pve1/129")["inside:file:/x"].out == b"in\n"
    assert snapshot.about("pve1") == {"boot_id": "x", "load": [1, 2]}
    assert (snapshot.targets, snapshot.synthetic, snapshot.created, snapshot.version, snapshot.complete) == (
        ("pve1", "pve1/129"), True, CREATED, "1.2", True,
    )  # fmt: skip
    assert snapshot.lookup("pve1", "file:/proc/version") == CAPTURES[0]
    assert snapshot.lookup("pve1", "file:/other") is None
    assert snapshot.lookup("other", "file:/proc/version") is None


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """Directories 0700, files 0600, whatever the umask."""
    old = os.umask(0)
    try:
        path = write(tmp_path / "s")
    finally:
        os.umask(old)
    modes = {found.stat().st_mode & 0o777 for found in path.rglob("*") if found.is_file()}
    folders = {found.stat().st_mode & 0o777 for found in [path, *path.rglob("*")] if found.is_dir()}
    assert (modes, folders) == ({0o600}, {0o700})


def test_text_can_be_edited_by_hand(tmp_path: Path) -> None:
    """Short output is in captures.json, longer output in a plain file with a telling name; both count as they are."""
    path = write(tmp_path / "s")
    (path / "pve1/file_proc_cpuinfo.txt").write_text("processor\t: 1\n")
    inline = path / "pve1/captures.json"
    inline.write_text(inline.read_text().replace("Linux", "Other"))
    captures = read(path).captures("pve1")
    assert captures["file:/proc/cpuinfo"].out == b"processor\t: 1\n"
    assert captures["file:/proc/version"].out == b"Other\n"


def test_killed_audit_leaves_what_was_finished(tmp_path: Path) -> None:
    """Targets are found by their last file, also when the manifest does not list them yet."""
    writer = SnapshotWriter(tmp_path / "s", version="1", created=CREATED)
    writer.write("pve1", CAPTURES)
    writer.write("pve1/129", [])
    half = tmp_path / "s" / "pve2"
    half.mkdir()
    (half / "captures.json").write_text("[")
    snapshot = read(tmp_path / "s")
    assert (snapshot.targets, snapshot.complete) == (("pve1", "pve1/129"), False)
    assert len(snapshot.captures("pve1")) == len(CAPTURES)


def test_existing_directory_is_not_mixed_up(tmp_path: Path) -> None:
    """A directory that holds anything is refused."""
    with pytest.raises(SnapshotError, match="not empty"):
        SnapshotWriter(write(tmp_path / "s"), version="1", created=CREATED)


def test_unwritable_place(tmp_path: Path) -> None:
    """A file where the directory should be is one clear error."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SnapshotError, match="cannot be written") as raised:
        SnapshotWriter(tmp_path / "file" / "s", version="1", created=CREATED)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ("{", "manifest.json"),
        ("[]", "no snapshot of Gapline"),
        ('{"schema": "other/1"}', "no snapshot of Gapline"),
        ('{"schema": "gapline/snapshot/2", "version": "9.1"}', "by Gapline 9.1"),
        ('{"schema": "gapline/snapshot/1"}', "Field required"),
        ('{"schema": "gapline/snapshot/1", "version": "1", "created": "yesterday", "synthetic": true}', "created"),
    ],
)
def test_manifest_that_is_no_manifest(tmp_path: Path, manifest: str, says: str) -> None:
    """Damaged, foreign and too new ones are told apart."""
    path = write(tmp_path / "s")
    (path / "manifest.json").write_text(manifest)
    with pytest.raises(SnapshotError, match=says) as raised:
        read(path)
    assert raised.value.hint


def test_no_snapshot_at_all(tmp_path: Path) -> None:
    """An empty directory and a path that does not exist."""
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SnapshotError, match="is no snapshot"):
            read(path)


def test_missing_files(tmp_path: Path) -> None:
    """A target that the manifest lists must be there, and so must every file that a capture names."""
    path = write(tmp_path / "s")
    (path / "pve1/file_proc_cpuinfo.txt").unlink()
    with pytest.raises(SnapshotError, match="file_proc_cpuinfo"):
        read(path).captures("pve1")
    (path / "pve1/captures.json").unlink()
    with pytest.raises(SnapshotError, match="is missing"):
        read(path)
    with pytest.raises(SnapshotError, match="has no target"):
        read(write(tmp_path / "t")).captures("pve9")


@pytest.mark.parametrize("name", ["../manifest.json", "/etc/passwd", "129/captures.json", "..", "", ".hidden", "a\0b"])
def test_file_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    """A snapshot from somebody else cannot make us read another file."""
    path = write(tmp_path / "s")
    (path / "pve1/captures.json").write_text(json.dumps([{"source": "file:/x", "file": name}]))
    with pytest.raises(SnapshotError) as raised:
        read(path).captures("pve1")
    assert raised.value.hint


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    """Neither a link to elsewhere nor a pipe that nobody writes to."""
    path = write(tmp_path / "s")
    (path / "pve1/link.txt").symlink_to("/etc/passwd")
    os.mkfifo(path / "pve1/pipe.txt")
    for name in ("link.txt", "pipe.txt"):
        (path / "pve1/captures.json").write_text(json.dumps([{"source": "file:/x", "file": name}]))
        with pytest.raises(SnapshotError):
            read(path).captures("pve1")
    (path / "pve1").rename(tmp_path / "elsewhere")
    (path / "pve1").symlink_to(tmp_path / "elsewhere")
    for target in ("pve1", "pve1/129"):
        with pytest.raises(SnapshotError, match="is a link"):
            read(path).captures(target)


@pytest.mark.parametrize(
    "entries", ["{}", "[1]", '[{"source": "x", "exit": "no"}]', '[{"source": "x", "more": 1}]', "["]
)
def test_damaged_captures(tmp_path: Path, entries: str) -> None:
    """A list that is none, or entries of another form."""
    path = write(tmp_path / "s")
    (path / "pve1/captures.json").write_text(entries)
    with pytest.raises(SnapshotError, match=r"captures\.json"):
        read(path).captures("pve1")


@given(target=st.text(max_size=200))
def test_folders_stay_inside(target: str) -> None:
    """Whatever a target is called, its folder is below the snapshot and no name of ours."""
    parts = folder(target).split("/")
    assert all(part and not part.startswith(".") and "\0" not in part and len(part) < 200 for part in parts)
    assert not parts[-1].endswith((".json", ".txt"))


@given(targets=st.sets(st.text(max_size=30), max_size=8))
def test_folders_differ(targets: set[str]) -> None:
    """Two targets never share a folder."""
    assert len({folder(target) for target in targets}) == len(targets)


@given(sources=st.sets(st.text(max_size=300), max_size=12))
def test_file_names_differ(sources: set[str]) -> None:
    """Neither do two sources share a file, also where case does not count."""
    taken: set[str] = set()
    names = [file_name(source, taken) for source in sources]
    assert len({name.lower() for name in names}) == len(sources)
    assert all("/" not in name and not name.startswith(".") for name in names)


@settings(deadline=None)  # writes files
@given(out=st.binary(max_size=600), err=st.text(max_size=50))
def test_bytes_survive(tmp_path_factory: pytest.TempPathFactory, out: bytes, err: str) -> None:
    """Output of any kind comes back byte by byte, and standard error as text."""
    capture = Capture("pve1", "file:/x", "/x", out, err.encode("utf-8", "replace"))
    path = write(tmp_path_factory.mktemp("s") / "s", [capture])
    assert read(path).captures("pve1")["file:/x"] == capture
