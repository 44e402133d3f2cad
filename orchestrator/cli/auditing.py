"""An audit from the command line: run it, show it as it goes, keep it, tell the answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import anyio
import click

from gapline import __version__
from gapline.orchestrator.audit.fan_out import Circumstances, audit
from gapline.orchestrator.cli import garbage, request
from gapline.orchestrator.cli.answer import tell_answer
from gapline.orchestrator.cli.context import SnapshotContext
from gapline.orchestrator.cli.progress import watching
from gapline.orchestrator.cli.routes import Ways, routes, ssh_warnings
from gapline.orchestrator.cli.selection import Selection
from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.model.run import Run
from gapline.orchestrator.paths import cache_path, state_path
from gapline.orchestrator.plan import Plan
from gapline.orchestrator.run_folder import RunFolder, default_path, make, remember
from gapline.orchestrator.run_log import logged
from gapline.orchestrator.snapshot import SnapshotWriter, read
from gapline.reports import html, json
from gapline.reports.view.evidence import Context


def audit_into(
    out: Path | None, plan: Plan, selection: Selection | None, *, as_json: bool, synthetic: bool = False
) -> int:
    """Audit, write `run.json` and `report.html` into a new directory, print the answer; the exit code.

    Raises:
        AuditError: a configuration, the disk, or a stored snapshot is at fault; hosts' own errors are in the run.
    """
    now = datetime.now(UTC)  # noqa: TID251 - the edge: names the directory
    for warning in ssh_warnings(plan.hosts):
        click.echo(f"warning: {warning}", err=True)
    folder = make(out or default_path(state_path(), now))
    if selection is not None:
        request.keep(selection, folder)
    run = collect(plan, folder, synthetic=synthetic)
    write(run, folder)
    remember_or_warn(folder)
    if as_json:
        click.echo(json.text(run))
    else:
        tell_answer(run, folder)
    return run.summary.exit_code


def collect(plan: Plan, folder: RunFolder, *, synthetic: bool = False, ways: Ways = routes) -> Run:
    """Run the plan into a further snapshot of the folder, showing progress on standard error."""
    name = folder.next_snapshot()
    created = datetime.now(UTC)  # noqa: TID251 - the edge: a snapshot says when it was made
    keep = SnapshotWriter(folder.snapshot(name), version=__version__, created=created, synthetic=synthetic)
    with (
        logged(folder.log),
        watching(plan, sys.stderr) as watch,
        garbage.looked_for_among_hosts(watch) as observe,
    ):
        finished: list[Run] = []

        async def main() -> None:
            # Not as this task's result: asyncio writes the task out when it restores the signal handler, result
            # and all, which takes 8 ms per target.
            async with ways() as connect:
                circumstances = Circumstances(synthetic=synthetic, snapshot=name)
                finished.append(await audit(plan, connect, keep=keep, circumstances=circumstances, observe=observe))

        anyio.run(main)
        return finished[0]


def remember_or_warn(folder: RunFolder) -> None:
    """Make it the last run. That this fails costs the next command an argument, and not this one its result."""
    try:
        remember(state_path(), folder)
    except ConfigError as error:
        click.echo(f"warning: not noted as the last run: {error}; {error.hint}", err=True)


def write(run: Run, folder: RunFolder) -> None:
    """Write the run and its report, each at once or not at all."""
    _replace(folder.run_json, json.stream(run))
    _replace(folder.report, html.stream(run, context_of(run, folder), _compiled_templates()))


def context_of(run: Run, folder: RunFolder) -> Context:
    """The lines around a cited one, from the newest snapshot that has them; without a snapshot there are none."""
    paths = (folder.snapshot(name) for name in reversed(run.run.snapshots))
    return SnapshotContext(tuple(read(path) for path in paths if path.is_dir()))


def _compiled_templates() -> str | None:
    """Where compiled templates are kept between commands, which saves each a sixth of a second; None if nowhere."""
    path = cache_path() / "templates"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return str(path) if os.access(path, os.W_OK) and path.stat().st_uid == os.getuid() else None


def _replace(path: Path, pieces: Iterable[str]) -> None:
    new = path.with_name(f"{path.name}.new")
    with open(new, "w", encoding="utf-8", errors="backslashreplace", opener=_private) as file:
        file.writelines(pieces)
    new.replace(path)


def _private(path: str, flags: int) -> int:
    """Runs name machines and what is wrong with them: for their owner only."""
    return os.open(path, flags, 0o600)
