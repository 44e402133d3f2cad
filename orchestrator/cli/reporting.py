"""A stored run in another form."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from gapline.orchestrator.cli.answer import tell_answer
from gapline.orchestrator.cli.auditing import context_of
from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.paths import state_path
from gapline.orchestrator.run_folder import RunFolder, last
from gapline.reports import html, json


def report(path: Path | None, form: str, output: Path | None) -> int:
    """Write it to the file, or to standard output.

    Raises:
        SnapshotError: there is no run, or it is damaged.
        ConfigError: the file cannot be written.
    """
    folder = folder_of(path)
    run = folder.read()
    if form == "terminal":
        tell_answer(run, folder)
        return 0
    pieces = json.stream(run) if form == "json" else html.stream(run, context_of(run, folder))
    if output is None:
        for piece in pieces:
            click.echo(piece, nl=False)
        return 0
    _write(output, pieces)
    return 0


def folder_of(path: Path | None) -> RunFolder:
    """The run's directory by whatever the user named: the directory, its run.json, or nothing for the last run."""
    if path is None:
        return last(state_path())
    return RunFolder(path.parent if path.is_file() else path)


def _write(output: Path, pieces: Iterable[str]) -> None:
    try:
        with output.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(pieces)
    except OSError as error:
        hint = "Name a file that you can write."
        raise ConfigError(f"cannot be written: {error.strerror}", path=output, hint=hint) from error
