"""The agents' cases `example-pve-…` are of the worked example's hosts: what stands there is what the fleet holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gapline.orchestrator.cli.registry import all_agents
from gapline.orchestrator.demo import FLEET
from gapline.orchestrator.model.agent import Agent, Scope
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.snapshot import read
from tests.agents.recorded import BINDING

_CASES = Path(__file__).parents[1] / "agents"
_INIT = "4127"  # of container 129 on pve-b; every case of a container has the one of the harness


@pytest.mark.parametrize("host", ["pve-a", "pve-b", "pve-c"])
def test_no_case_contradicts_the_fleet(host: str) -> None:
    """Two agents that read the same thing are shown the same, and so is a reader of the report."""
    assert list(_contradictions(host)) == []


def _contradictions(host: str) -> Iterator[str]:
    fleet = read(FLEET)
    for agent in all_agents():
        if not isinstance(agent, Agent):
            continue
        held = fleet.captures(host if agent.scope is Scope.HOST else f"{host}/129")
        own, of_pairs = f"{agent.id}/cases/example-{host}", f"pair.*/cases/example-{host}/{agent.id}"
        for case in (*_CASES.glob(own), *_CASES.glob(of_pairs)):
            for name, source in agent.sources.items():
                answer = held.get(source.key)  # that every source has one is tested elsewhere
                if answer is not None and _printed(answer, agent.scope) != _recorded(case / name):
                    yield str(case.relative_to(_CASES) / name)


def _printed(capture: Capture, scope: Scope) -> bytes | None:
    if capture.problem is not None:
        return None
    return capture.out if scope is Scope.HOST else capture.out.replace(_INIT.encode(), BINDING.init.encode())


def _recorded(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
