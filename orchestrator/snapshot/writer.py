"""Writes a snapshot target by target, so that an audit that is killed leaves what was finished."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import SnapshotError
from gapline.orchestrator.snapshot.layout import CAPTURES, INLINE, MANIFEST, TARGET, Manifest, file_name, folder


class SnapshotWriter:
    """A snapshot under way in a new or empty directory. Readable by its owner only."""

    def __init__(self, path: Path, *, version: str, created: datetime, synthetic: bool = False) -> None:
        """Make the directory and its manifest.

        Raises:
            SnapshotError: it cannot be written there, or something else is there already.
        """
        self.path = path
        self._manifest = Manifest(version=version, created=created, synthetic=synthetic)
        self._targets: dict[str, None] = {}
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise SnapshotError(f"{path}: is not empty", hint="Give a new directory for the snapshot.")
            self._write_manifest()
        except OSError as error:
            raise _unwritable(path, error) from error

    def write(self, target: str, captures: Iterable[Capture], about: Mapping[str, Any] | None = None) -> None:
        """Write all captures of a target that is finished, and what is known `about` it (JSON values).

        Raises:
            SnapshotError: the disk does not take it.
        """
        directory = self.path / folder(target)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            taken: set[str] = set()
            entries = [_entry(directory, capture, taken) for capture in captures]
            _replace(directory / CAPTURES, entries)
            _replace(directory / TARGET, {"target": target, "about": dict(about or {})})
        except OSError as error:
            raise _unwritable(directory, error) from error
        self._targets[target] = None

    def finish(self) -> None:
        """Everything is written: the manifest lists the targets.

        Raises:
            SnapshotError: the disk does not take it.
        """
        self._manifest = self._manifest.model_copy(update={"targets": tuple(sorted(self._targets))})
        try:
            self._write_manifest()
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _write_manifest(self) -> None:
        _replace(self.path / MANIFEST, self._manifest.model_dump(mode="json"))


def _entry(directory: Path, capture: Capture, taken: set[str]) -> dict[str, Any]:
    """A capture as it is written: what is at its default is left out, so that people can read and edit it."""
    entry: dict[str, Any] = {"source": capture.source, "shown": capture.shown}
    text = _inline(capture.out)
    if text is None:
        entry["file"] = file_name(capture.source, taken)
        _put(directory / entry["file"], capture.out)
    else:
        entry["text"] = text
    if capture.err:
        entry["err"] = capture.err.decode("utf-8", "backslashreplace")
    entry["exit"] = capture.exit
    entry["seconds"] = capture.seconds
    if capture.truncated:
        entry["truncated"] = True
    if capture.problem is not None:
        entry["problem"] = capture.problem.model_dump(mode="json")
    return entry


def _inline(out: bytes) -> str | None:
    if len(out) > INLINE:
        return None
    try:
        return out.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _replace(path: Path, value: object) -> None:
    """Write JSON at once or not at all."""
    new = path.with_name(f".{path.name}.new")
    _put(new, to_json(value, indent=1) + b"\n")
    new.replace(path)


def _put(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb", buffering=0) as file:  # noqa: PTH123  # from a descriptor
        file.write(data)


def _unwritable(path: Path, error: OSError) -> SnapshotError:
    return SnapshotError(f"{path}: cannot be written: {error.strerror}", hint="Choose another directory with --out.")
