"""What hosts have: their GPUs and containers, without judging anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import anyio
import click
from rich.console import Console
from rich.text import Text

from gapline.orchestrator.audit.fan_out import Circumstances, audit
from gapline.orchestrator.cli.routes import routes
from gapline.orchestrator.cli.selection import Selection, plan_of
from gapline.orchestrator.model.errors import DefectError
from gapline.orchestrator.model.run import OutcomeEntry, Run, TargetEntry, TargetKind
from gapline.orchestrator.plan import Plan
from gapline.reports.visible import visible

_DRIVER = "host.nvidia_driver"
_CONTAINER = (TargetKind.LXC_CONTAINER,)


def discover(selection: Selection, *, as_json: bool) -> int:
    """Print it; 3 when a host could not be looked at, 4 when a bug of ours is the reason."""
    run = anyio.run(_audit, plan_of(replace(selection, agents=(_DRIVER,))))
    if as_json:
        click.echo(json.dumps(_document(run), indent=1))
    else:
        console = Console(highlight=False)
        for line in _lines(run):
            console.print(line, soft_wrap=True)
    if run.summary.exit_code == DefectError.exit_code:
        return DefectError.exit_code
    return 3 if any(target.problem is not None for target in run.targets) else 0


async def _audit(plan: Plan) -> Run:
    async with routes() as connect:
        return await audit(plan, connect, keep=None, circumstances=Circumstances())


def _lines(run: Run) -> Iterator[Text]:
    for target in run.targets:
        if target.kind in _CONTAINER:
            mark = ("GPU  ", "green") if target.audited else ("     ", "")
            name = f"  {visible(target.name):<24}"
            yield Text.assemble(
                name, mark, (visible(target.problem.detail if target.problem else target.reason), "dim")
            )
            continue
        kind = target.kind.value.replace("_", " ")
        yield Text.assemble((visible(target.id), "bold"), f"  {kind}  {visible(target.name)}  {target.privilege or ''}")
        if target.problem is not None:
            yield Text(f"  {visible(target.problem.detail)}\n  {visible(target.problem.hint)}", "red")
        for gpu in _gpus(run, target):
            yield Text(f"  GPU {visible(gpu)}")


def _gpus(run: Run, target: TargetEntry) -> tuple[str, ...]:
    for entry in run.outcomes:
        if entry.target == target.id and entry.agent == _DRIVER:
            gpus = _in_fact(entry)
            told = tuple("  ".join(str(gpu[key]) for key in _GPU_KEYS if gpu.get(key) is not None) for gpu in gpus)
            return told or (entry.reason,)
    return ()


def _in_fact(entry: OutcomeEntry) -> list[dict[str, Any]]:
    return entry.fact["gpus"] if entry.fact is not None and "gpus" in entry.fact else []


_GPU_KEYS = ("bus_id", "minor", "model")


def _document(run: Run) -> dict[str, object]:
    return {
        "schema": "gapline/discover/1",
        "hosts": [
            {
                "id": host.id,
                "kind": host.kind.value,
                "problem": host.problem.model_dump(mode="json") if host.problem else None,
                "gpus": next((_in_fact(entry) for entry in run.outcomes if entry.target == host.id), []),
                "containers": [
                    {"id": one.id, "name": one.name, "gpu": one.audited, "reason": one.reason}
                    for one in run.targets
                    if one.parent == host.id
                ],
            }
            for host in run.targets
            if host.kind not in _CONTAINER
        ],
    }
