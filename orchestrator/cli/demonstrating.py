"""The worked example: its hosts audited over real SSH on loopback, and one agent again after the repair of one."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import click

from gapline.orchestrator.audit.host_audit import Connect
from gapline.orchestrator.cli.answer import tell_answer
from gapline.orchestrator.cli.auditing import collect, write
from gapline.orchestrator.cli.rerunning import rerun_into, rerun_plan, tell_changes
from gapline.orchestrator.cli.selection import Selection, plan_of
from gapline.orchestrator.demo import FLEET, REPAIRED
from gapline.orchestrator.model.run import Run
from gapline.orchestrator.run_folder import RunFolder, make
from gapline.orchestrator.snapshot import read
from gapline.orchestrator.transport.ssh.dialer import Dialer
from gapline.orchestrator.transport.ssh.replay_process import serving
from gapline.orchestrator.transport.ssh.settings import SshSettings
from gapline.reports import json
from gapline.reports.visible import visible

_HOST, _CONTAINER, _AGENT = "pve-b", "pve-b/129", "pair.device_chain"
_EVERYTHING = Selection(targets=(), fleet=None)


def demonstrate(directory: Path | None, *, as_json: bool) -> int:
    """Audit into the directory, and run one agent again in a copy of it; the exit code of a demonstration is 0.

    Raises:
        ConfigError: the directory cannot be written, or a run lies there.
        TransportError: the server did not start.
    """
    folder = make(directory or _free_directory())
    run = audit_fleet(folder)
    if as_json:
        click.echo(json.text(run))
        return 0
    tell_answer(run, folder)
    click.echo(f"\n{_diff(run)}\nThat is applied and {_CONTAINER} restarted. Then:")
    click.echo(f"$ gapline rerun {_AGENT} --target {_CONTAINER}")
    copy = RunFolder(folder.path / REPAIRED.name)
    shutil.copytree(folder.path, copy.path)
    rerun_repaired(copy, run)
    click.echo(f"report  {copy.report}")
    return 0


def audit_fleet(folder: RunFolder, fleet: Path = FLEET) -> Run:
    """Audit the example's hosts as they are in the morning, and write run and report."""
    names = (target for target in read(fleet).targets if "/" not in target)
    with serving(fleet) as server:
        hosts = tuple(server.host(name) for name in names)
        run = collect(plan_of(_EVERYTHING, hosts), folder, synthetic=True, ways=loopback)
    write(run, folder)
    return run


def rerun_repaired(folder: RunFolder, run: Run) -> None:
    """Run the agent that verifies the repair, merge it into the folder's run, and print what changed."""
    with serving(FLEET, REPAIRED) as server:
        plan = rerun_plan(run, _EVERYTHING, (server.host(_HOST),), (_AGENT,), (_CONTAINER,))
        tell_changes(*rerun_into(folder, run, plan, loopback))


def _diff(run: Run) -> str:
    """The change that the finding of the example asks for."""
    findings = (one for entry in run.outcomes if entry.target == _CONTAINER for one in entry.findings)
    return next(visible(one.remedy.diff) for one in findings if one.remedy.verify_agent == _AGENT and one.remedy.diff)


@asynccontextmanager
async def loopback() -> AsyncIterator[Connect]:
    """Connections that take nothing from the user's SSH configuration."""
    async with Dialer(SshSettings(config=())) as dialer:
        yield dialer.connect


def _free_directory() -> Path:
    names = (Path("gapline-demo" + (f"-{number}" if number > 1 else "")) for number in count(1))
    return next(path for path in names if not path.exists())
