"""Reads a snapshot that may have been edited, cut short, or made by somebody who means harm."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import SnapshotError
from gapline.orchestrator.snapshot.layout import (
    CAPTURES,
    FAMILY,
    MANIFEST,
    SCHEMA,
    TARGET,
    About,
    Entry,
    Manifest,
    folder,
)

_ENTRIES = TypeAdapter(tuple[Entry, ...])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot whose manifest is sound. Targets are read when they are asked for."""

    path: Path
    version: str
    created: datetime
    synthetic: bool
    complete: bool  # False: the audit was ended before all targets were written
    targets: tuple[str, ...]

    def captures(self, target: str) -> Mapping[str, Capture]:
        """The captures of a target by the keys of their sources.

        Raises:
            SnapshotError: the target is not in it, or its files are damaged, missing or outside of it.
        """
        directory = self._directory(target)
        path = directory / CAPTURES
        try:
            entries = _ENTRIES.validate_json(_bytes(path))
        except ValidationError as error:
            raise _damaged(path, _reason(error)) from error
        return MappingProxyType({entry.source: _capture(target, directory, entry) for entry in entries})

    def about(self, target: str) -> Mapping[str, Any]:
        """What the audit knew about the target.

        Raises:
            SnapshotError: the target is not in it, or its file is damaged.
        """
        return _about(self._directory(target)).about

    def lookup(self, target: str, key: str) -> Capture | None:
        """One capture, for replays; None when there is no such target or source. Reads the target every time."""
        return self.captures(target).get(key) if target in self.targets else None

    def _directory(self, target: str) -> Path:
        if target not in self.targets:
            known = ", ".join(self.targets[:8]) or "none"
            raise SnapshotError(f"{self.path}: has no target {target}", hint=f"It has: {known}.")
        directory = self.path / folder(target)
        if any(part.is_symlink() for part in (directory, directory.parent) if part != self.path):
            raise _damaged(directory, "is a link and leads out of the snapshot")
        return directory


def read(path: Path) -> Snapshot:
    """Open a snapshot.

    Raises:
        SnapshotError: there is none, it is damaged, made by a newer version, or something else.
    """
    manifest = _manifest(path / MANIFEST)
    targets = manifest.targets
    if targets is None:
        targets = tuple(sorted(_finished(path)))
    for target in targets:
        if not (path / folder(target) / CAPTURES).is_file():
            raise SnapshotError(
                f"{path / folder(target) / CAPTURES}: is missing",
                hint=f"Put the folder back, or take {target} out of {MANIFEST}.",
            )
    return Snapshot(path, manifest.version, manifest.created, manifest.synthetic, manifest.targets is not None, targets)


def _manifest(path: Path) -> Manifest:
    if not path.is_file():
        raise SnapshotError(
            f"{path.parent}: is no snapshot: it has no {MANIFEST}", hint="Give the snapshot's directory."
        )
    data = _bytes(path)
    try:
        raw = json.loads(data)
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != SCHEMA:
        raise _foreign(path, schema, raw.get("version") if isinstance(raw, dict) else None)
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        raise _damaged(path, _reason(error)) from error


def _finished(path: Path) -> list[str]:
    """The targets that were written completely before the audit was killed; hosts and their containers."""
    found = [*path.glob(f"*/{TARGET}"), *path.glob(f"*/*/{TARGET}")]
    named = {file: _about(file.parent).target for file in found}
    return [target for file, target in named.items() if path / folder(target) / TARGET == file]


def _about(directory: Path) -> About:
    path = directory / TARGET
    try:
        return About.model_validate_json(_bytes(path))
    except ValidationError as error:
        raise _damaged(path, _reason(error)) from error


def _capture(target: str, directory: Path, entry: Entry) -> Capture:
    out = (entry.text or "").encode() if entry.file is None else _output(directory, entry.file)
    return Capture(
        target,
        entry.source,
        entry.shown or entry.source,
        out,
        entry.err.encode(),
        entry.exit,
        entry.seconds,
        entry.truncated,
        entry.problem,
    )


def _output(directory: Path, name: str) -> bytes:
    """A plain file beside captures.json, and nothing else whatever its name says."""
    if name != os.path.basename(name) or name.startswith(".") or "\0" in name:  # noqa: PTH119
        raise _damaged(directory / CAPTURES, f"the file name {name!r} leads out of the target's folder")
    return _bytes(directory / name)


def _bytes(path: Path) -> bytes:
    """A regular file's content; links are not followed and pipes not waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _damaged(path, f"cannot be read: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _damaged(path, "is not a plain file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _foreign(path: Path, schema: object, version: object) -> SnapshotError:
    if isinstance(schema, str) and schema.startswith(FAMILY):
        by = f" by Gapline {version}" if isinstance(version, str) else ""
        return SnapshotError(
            f"{path}: was made{by} in a form this version does not know: {schema}", hint="Update Gapline."
        )
    return SnapshotError(f"{path}: is no snapshot of Gapline", hint=f"Its schema should be {SCHEMA}.")


def _damaged(path: Path, reason: str) -> SnapshotError:
    return SnapshotError(f"{path}: {reason}", hint="Repair the file, or take the snapshot again.")


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else first["msg"]
