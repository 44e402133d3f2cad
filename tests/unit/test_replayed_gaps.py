"""A snapshot that was made before an agent existed."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import anyio

from gapline.orchestrator.audit.fan_out import Circumstances, audit
from gapline.orchestrator.cli.replaying import replayed_hosts
from gapline.orchestrator.cli.routes import routes
from gapline.orchestrator.cli.selection import Selection, plan_of
from gapline.orchestrator.demo import FLEET
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.run import OutcomeEntry, Run
from gapline.orchestrator.snapshot import read

_SOURCE = "file:/proc/sys/kernel/numa_balancing"
_AGENT = "host.numa_balancing"


def _replayed(path: Path) -> OutcomeEntry:
    plan = plan_of(Selection(targets=(), fleet=None, agents=(_AGENT,)), replayed_hosts(read(path)))
    finished: list[Run] = []

    async def main() -> None:
        async with routes() as connect:
            finished.append(await audit(plan, connect, keep=None, circumstances=Circumstances(synthetic=True)))

    anyio.run(main)
    return next(entry for entry in finished[0].outcomes if (entry.target, entry.agent) == ("pve-b", _AGENT))


def test_a_source_that_was_not_asked_for_is_unseen(tmp_path: Path) -> None:
    """It is not taken for a file that is not there, which would clear the agent's question."""
    copytree(FLEET, tmp_path / "old")
    captures = tmp_path / "old" / "pve-b" / "captures.json"
    assert _replayed(tmp_path / "old").status is Status.FOUND
    kept = [entry for entry in json.loads(captures.read_text()) if entry["source"] != _SOURCE]
    captures.write_text(json.dumps(kept))
    entry = _replayed(tmp_path / "old")
    assert entry.status is Status.UNKNOWN
    assert entry.problem is not None
    assert entry.problem.kind is ProblemKind.UNSEEN
