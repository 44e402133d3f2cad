"""Where a run lies: one directory for `run.json`, `report.html`, log and snapshots; and which run was the last."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote

from pydantic import ValidationError

from gapline.orchestrator.model.errors import ConfigError, SnapshotError
from gapline.orchestrator.model.run import SCHEMA, Run

_LAST = "last-run"
_FIRST = "snapshot-1"
_UNFINISHED = "an audit lies there that was ended before its run was written"
_ELSEWHERE = "Give another directory with --out, or remove it."


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The directory of one run."""

    path: Path

    @property
    def run_json(self) -> Path:
        """The run itself."""
        return self.path / "run.json"

    @property
    def report(self) -> Path:
        """The report."""
        return self.path / "report.html"

    @property
    def log(self) -> Path:
        """The log, one JSON object per line."""
        return self.path / "log.jsonl"

    def snapshot(self, name: str) -> Path:
        """The directory of a snapshot by the name that the run gives it."""
        return self.path / name

    @property
    def unfinished(self) -> bool:
        """Whether an audit began here and ended before its run was written: Ctrl-C, a full disk, a killed process."""
        return not self.run_json.exists() and (self.path / _FIRST).exists()

    def next_snapshot(self) -> str:
        """A name for a further snapshot."""
        number = 1
        while (self.path / f"snapshot-{number}").exists():
            number += 1
        return f"snapshot-{number}"

    def read(self) -> Run:
        """The run that lies here.

        Raises:
            SnapshotError: there is none, it is damaged, or a newer version made it.
        """
        try:
            data = self.run_json.read_bytes()
        except OSError as error:
            if self.unfinished:
                raise SnapshotError(f"{self.path}: {_UNFINISHED}", hint=self.way_on) from error
            raise SnapshotError(f"{self.run_json}: {error.strerror}", hint="Name the directory of a run.") from error
        try:
            return Run.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            message = f"{self.run_json}: is no run of the form {SCHEMA}: {place}: {first['msg']}"
            hint = "It is damaged, or made by another version of Gapline; audit again or upgrade."
            raise SnapshotError(message, hint=hint) from error

    @property
    def way_on(self) -> str:
        """What can be done about an audit that did not finish."""
        return f"Judge the targets that it got through: gapline replay {quote(str(self.path / _FIRST))}."


def make(path: Path) -> RunFolder:
    """A directory for a new run, made now so that a mistake shows before the first connection.

    Raises:
        ConfigError: it cannot be written, or another run lies there.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = RunFolder(path.resolve())
        if folder.run_json.exists():
            raise ConfigError("a run lies there already", path=path, hint=_ELSEWHERE)
        if folder.unfinished:
            raise ConfigError(_UNFINISHED, path=path, hint=f"{_ELSEWHERE} {folder.way_on}")
        if not os.access(path, os.W_OK | os.X_OK):
            raise ConfigError("is not writable", path=path, hint="Give a directory that you can write to.")
    except OSError as error:
        hint = "Give a directory that you can write to with --out."
        raise ConfigError(f"cannot be made: {error.strerror}", path=path, hint=hint) from error
    return folder


def default_path(state: Path, started: datetime) -> Path:
    """Where a run goes when nobody says where: below the user's state directory, named by its time."""
    stem = f"{started:%Y-%m-%dT%H%M%S}"
    path, number = state / "runs" / stem, 1
    while path.exists():
        number += 1
        path = state / "runs" / f"{stem}-{number}"
    return path


def remember(state: Path, folder: RunFolder) -> None:
    """Make this the last run, which `gapline rerun` and `gapline report` take by default.

    Raises:
        ConfigError: the state directory cannot be written.
    """
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = state / f"{_LAST}.new"
        new.write_text(f"{folder.path}\n", encoding="utf-8")
        new.replace(state / _LAST)
    except OSError as error:
        hint = "Set GAPLINE_STATE to a directory that you can write to, or name the run with --run."
        raise ConfigError(f"cannot be written: {error.strerror}", path=state, hint=hint) from error


def last(state: Path) -> RunFolder:
    """The last run.

    Raises:
        ConfigError: there is none, or it is gone.
    """
    try:
        path = Path((state / _LAST).read_text(encoding="utf-8").strip())
    except OSError:
        raise ConfigError("there is no run yet", hint="Make one: gapline audit user@host") from None
    if not (path / "run.json").is_file():
        raise ConfigError("the last run is gone", path=path, hint="Name a run's directory with --run, or audit again.")
    return RunFolder(path)
