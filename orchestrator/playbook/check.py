"""A playbook against the agents that exist."""

from __future__ import annotations

from collections.abc import Sequence

from gapline.orchestrator.model.agent import AnyAgent
from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.playbook.playbook import AgentEntry, Playbook
from gapline.orchestrator.yaml_document.faults import Faults, did_you_mean


def check(playbook: Playbook, agents: Sequence[AnyAgent]) -> None:
    """Every agent that a playbook names must exist and get the limits it declares, no more and no less.

    An agent that it does not name is not run by it, which is no fault.

    Raises:
        ConfigError: all faults, each at the place in the playbook.
    """
    known = {agent.id: agent for agent in agents}
    faults = Faults()
    for id_, entry in playbook.entries.items():
        agent = known.get(id_)
        if agent is None:
            faults.add(entry.place.fault(f"there is no agent {id_}", did_you_mean(id_, known)))
            continue
        for fault in _limit_faults(entry, agent):
            faults.add(fault)
    faults.stop_if_any()


def _limit_faults(entry: AgentEntry, agent: AnyAgent) -> tuple[ConfigError, ...]:
    undeclared = tuple(
        place.fault(f"agent {agent.id} has no limit {name}", did_you_mean(name, agent.limits))
        for name, place in entry.limit_places.items()
        if name not in agent.limits
    )
    missing = tuple(
        entry.place.fault(f"agent {agent.id} needs the limit {name}", f"Set {name} with a value and its origin.")
        for name in agent.limits
        if name not in entry.limits
    )
    return undeclared + missing
