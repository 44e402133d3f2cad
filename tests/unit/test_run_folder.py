"""Where a run lies: whole or not at all, private, and found again."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapline.orchestrator.cli import auditing
from gapline.orchestrator.model.errors import ConfigError, SnapshotError
from gapline.orchestrator.run_folder import RunFolder, default_path, last, make, remember
from gapline.reports import json
from tests.unit.invented import STARTED, entry, found, run


def stored(folder: RunFolder) -> RunFolder:
    """With a run in it."""
    folder.run_json.write_text(json.text(run(entry())))
    return folder


def test_a_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """Written, read, equal; and the report beside it."""
    folder = make(tmp_path / "deep" / "run")
    whole = run(found(), snapshots=())
    auditing.write(whole, folder)
    assert folder.read() == whole
    assert "<html" in folder.report.read_text()
    for path in (folder.run_json, folder.report):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_killed_between_writes_the_old_run_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is replaced at once or not at all."""
    folder = stored(make(tmp_path / "run"))
    before = folder.run_json.read_bytes()

    def killed(*_: object) -> Iterator[str]:
        yield '{"schema": "gapline/run/1",'
        raise KeyboardInterrupt

    monkeypatch.setattr(json, "stream", killed)
    with pytest.raises(KeyboardInterrupt):
        auditing.write(run(found(), snapshots=()), folder)
    assert folder.run_json.read_bytes() == before
    assert folder.read().summary.exit_code == 0


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    """Neither by another run nor by an audit that then fails."""
    stored(make(tmp_path / "run"))
    with pytest.raises(ConfigError, match="a run lies there already") as caught:
        make(tmp_path / "run")
    assert "--out" in caught.value.hint


def test_an_audit_that_did_not_finish_is_told_from_a_run(tmp_path: Path) -> None:
    """Whoever audits there or reads it is told what lies there, and that its captures can be judged."""
    folder = make(tmp_path / "run")
    assert not folder.unfinished
    folder.snapshot(folder.next_snapshot()).mkdir()
    with pytest.raises(ConfigError, match="ended before its run was written") as caught:
        make(tmp_path / "run")
    assert "--out" in caught.value.hint
    with pytest.raises(SnapshotError, match="ended before its run was written") as unread:
        folder.read()
    for hint in (caught.value.hint, unread.value.hint):
        assert f"gapline replay {folder.path}/snapshot-1" in hint
    assert not stored(folder).unfinished


@pytest.mark.parametrize("below", ["", "sub/run"])
def test_a_file_is_no_directory(tmp_path: Path, below: str) -> None:
    """A path that is, or leads through, a file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be made") as caught:
        make(tmp_path / "file" / below)
    assert caught.value.exit_code == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_unwritable_directory(tmp_path: Path) -> None:
    """Said before the first connection."""
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere; the command line's tests try /proc")
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigError, match=r"not writable|cannot be made"):
        make(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        ("", "is no run"),
        ("{}", "is no run"),
        ('{"schema": "gapline/run/2"}', "schema"),
        ("\x00\xff", "is no run"),
    ],
)
def test_damaged_foreign_and_absent_runs(tmp_path: Path, content: str | None, said: str) -> None:
    """One clear error with the file and a hint."""
    folder = RunFolder(tmp_path)
    if content is not None:
        folder.run_json.write_text(content)
    with pytest.raises(SnapshotError, match=said) as caught:
        folder.read()
    assert str(folder.run_json) in str(caught.value)
    assert caught.value.hint


def test_snapshots_are_numbered(tmp_path: Path) -> None:
    """Each collection gets the next free name, also after one that was broken off."""
    folder = make(tmp_path)
    assert folder.next_snapshot() == "snapshot-1"
    (tmp_path / "snapshot-1").mkdir()
    assert folder.next_snapshot() == "snapshot-2"


def test_default_paths_differ(tmp_path: Path) -> None:
    """Two runs in the same second lie apart."""
    first = default_path(tmp_path, STARTED)
    assert first == tmp_path / "runs" / "2026-03-04T050607"
    first.mkdir(parents=True)
    assert default_path(tmp_path, STARTED).name == "2026-03-04T050607-2"


def test_the_last_run_is_found(tmp_path: Path) -> None:
    """And when it is gone, or there never was one, that is said."""
    state = tmp_path / "state"
    with pytest.raises(ConfigError, match="no run yet"):
        last(state)
    folder = stored(make(tmp_path / "run"))
    remember(state, folder)
    assert last(state) == folder
    folder.run_json.unlink()
    with pytest.raises(ConfigError, match="is gone"):
        last(state)


def test_unwritable_state_is_said(tmp_path: Path) -> None:
    """With what to do about it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written") as caught:
        remember(tmp_path / "file", make(tmp_path / "run"))
    assert "GAPLINE_STATE" in caught.value.hint
