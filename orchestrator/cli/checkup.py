"""What stands between a target and a complete audit."""

from __future__ import annotations

import json
from collections.abc import Iterator

import anyio
import click
from rich.console import Console
from rich.text import Text

from gapline.orchestrator.audit.fan_out import Circumstances, audit
from gapline.orchestrator.cli.routes import routes, ssh_warnings
from gapline.orchestrator.cli.selection import Selection, plan_of
from gapline.orchestrator.model.errors import DefectError
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.model.run import Run, TargetEntry, TargetKind
from gapline.orchestrator.plan import Plan
from gapline.reports.visible import visible

_SKEW = 5.0  # seconds; below, it is the round trip and the one-second grain of `date +%s`


def doctor(selection: Selection, *, as_json: bool) -> int:
    """Print it; 3 when a target is out of reach or something would be unknown, 4 when a bug of ours is the reason."""
    plan = plan_of(selection)
    warnings = ssh_warnings(plan.hosts)
    run = anyio.run(_audit, plan)
    if as_json:
        click.echo(json.dumps(_document(run, warnings), indent=1))
    else:
        console = Console(highlight=False)
        for warning in warnings:
            console.print(Text(f"warning: {visible(warning)}", "yellow"), soft_wrap=True)
        for target in run.targets:
            for line in _lines(run, target):
                console.print(line, soft_wrap=True)
    if run.summary.exit_code == DefectError.exit_code:
        return DefectError.exit_code
    return 3 if any(_obstacles(run, target) for target in run.targets if target.audited) else 0


async def _audit(plan: Plan) -> Run:
    async with routes() as connect:
        return await audit(plan, connect, keep=None, circumstances=Circumstances())


def _lines(run: Run, target: TargetEntry) -> Iterator[Text]:
    if not target.audited:
        return
    obstacles = _obstacles(run, target)
    state = (
        ("ready", "green") if not obstacles else ("not reached", "red") if _unreached(target) else ("in part", "yellow")
    )
    yield Text.assemble((visible(target.id), "bold"), "  ", state, (f"  {_met(target)}", "dim"))
    if target.clock_skew_seconds is not None and abs(target.clock_skew_seconds) > _SKEW:
        yield Text(f"  its clock is {target.clock_skew_seconds:+.0f} s off ours: logs will not line up", "yellow")
    for who, problem in obstacles:
        yield Text(f"  {who}: {visible(problem.detail)}")
        if problem.hint:
            yield Text(f"    {visible(problem.hint)}", "dim")


def _obstacles(run: Run, target: TargetEntry) -> tuple[tuple[str, Problem], ...]:
    """Why which part would be unknown."""
    own = (("reach", target.problem),) if target.problem is not None else ()
    if _unreached(target):
        return own
    answers = ((entry.agent, entry) for entry in run.outcomes if entry.target == target.id)
    return own + tuple(
        (agent, problem)
        for agent, entry in answers
        for problem in dict.fromkeys((*((entry.problem,) if entry.problem else ()), *entry.unseen))
        if entry.status is Status.UNKNOWN or entry.unseen
    )


def _unreached(target: TargetEntry) -> bool:
    return target.kind is TargetKind.UNREACHED


def _met(target: TargetEntry) -> str:
    if _unreached(target):
        return ""
    return ", ".join(part for part in (target.kind.value.replace("_", " "), target.route, target.privilege) if part)


def _document(run: Run, warnings: tuple[str, ...]) -> dict[str, object]:
    return {
        "schema": "gapline/doctor/1",
        "warnings": warnings,
        "targets": [
            {
                **target.model_dump(mode="json", include={"id", "kind", "route", "privilege", "clock_skew_seconds"}),
                "ready": not _obstacles(run, target),
                "obstacles": [
                    {"what": who, **problem.model_dump(mode="json")} for who, problem in _obstacles(run, target)
                ],
            }
            for target in run.targets
            if target.audited
        ],
    }
