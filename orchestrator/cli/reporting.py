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
from gapline.orchestrator.yaml_document.faults import did_you_mean
from gapline.reports import html, json
from gapline.reports.runbook.markdown import markdown
from gapline.reports.runbook.plan import runbook
from gapline.reports.runbook.script import script


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
    _put(output, json.stream(run) if form == "json" else html.stream(run, context_of(run, folder)))
    return 0


def runbook_of(path: Path | None, target: str | None, form: str, output: Path | None) -> int:
    """Write the plan of repair to the file, or to standard output.

    Raises:
        SnapshotError: there is no run, or it is damaged.
        ConfigError: the run has no such target, or the file cannot be written.
    """
    run = folder_of(path).read()
    known = [one.id for one in run.targets]
    if target is not None and target not in known:
        near = did_you_mean(target, known)
        raise ConfigError(f"the run has no target {target!r}", hint=near or f"It has {', '.join(known)}.")
    book = runbook(run, target)
    _put(output, script(book) if form == "sh" else markdown(book))
    return 0


def folder_of(path: Path | None) -> RunFolder:
    """The run's directory by whatever the user named: the directory, its run.json, or nothing for the last run."""
    if path is None:
        return last(state_path())
    return RunFolder(path.parent if path.is_file() else path)


def _put(output: Path | None, pieces: Iterable[str]) -> None:
    if output is not None:
        _write(output, pieces)
        return
    for piece in pieces:
        click.echo(piece, nl=False)


def _write(output: Path, pieces: Iterable[str]) -> None:
    try:
        with output.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(pieces)
    except OSError as error:
        hint = "Name a file that you can write."
        raise ConfigError(f"cannot be written: {error.strerror}", path=output, hint=hint) from error
