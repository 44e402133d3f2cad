"""The agents that a rerun imports are those that it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gapline import agents
from gapline.orchestrator.cli.registry import agents_for, all_agents
from gapline.orchestrator.model.agent import Agent, PairAgent
from gapline.orchestrator.plan import with_needed, with_pairs


@pytest.mark.parametrize("id_", [agent.id for agent in all_agents()])
def test_as_good_as_all(id_: str) -> None:
    """What would run among the few is what would run among all."""
    few, everyone = agents_for((id_,)), all_agents()
    chosen = [agent for agent in everyone if agent.id == id_]
    assert with_needed(with_pairs(chosen, few), few) == with_needed(with_pairs(chosen, everyone), everyone)


def test_an_agent_that_no_pair_needs_comes_with_pairs_only() -> None:
    """It lies in the module that its id names, and the others that read targets are left out."""
    few = agents_for(("host.numa_balancing",))
    assert [agent.id for agent in few if isinstance(agent, Agent)] == ["host.numa_balancing"]
    assert {agent for agent in few if isinstance(agent, PairAgent)} == {
        agent for agent in all_agents() if isinstance(agent, PairAgent)
    }


@pytest.mark.parametrize("id_", ["host.*", "host.nothing", "nothing", "..", "", "host.cpu"])
def test_what_names_no_module_of_an_agent_means_all(id_: str) -> None:
    """Patterns pick among all, and who asks for what there is not is told what there is."""
    assert agents_for((id_,)) == all_agents()


def test_the_others_are_not_imported() -> None:
    """Their modules stay where they are."""
    program = (
        "import sys; from gapline.orchestrator.cli.registry import agents_for; agents_for(('host.numa_balancing',));"
        f"print([name for name in sys.modules if name == '{agents.__name__}.host.idle_states'])"
    )
    assert subprocess.check_output((sys.executable, "-c", program), text=True).strip() == "[]"
