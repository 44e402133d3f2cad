"""Which agents run: those of the playbook, or those that `--agent` names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from gapline.orchestrator.model.agent import Agent, AnyAgent
from gapline.orchestrator.model.errors import PlanError
from gapline.orchestrator.odd_one_out import AGENT as ODD_ONE_OUT
from gapline.orchestrator.playbook.playbook import Playbook
from gapline.orchestrator.yaml_document.faults import did_you_mean

_WILD = frozenset("*?[")


def select_agents(playbook: Playbook, agents: Sequence[AnyAgent], ids: Sequence[str]) -> tuple[AnyAgent, ...]:
    """The agents to run, in the order of `agents`.

    Without ids these are the playbook's. An id runs its agent whatever the level and even where the playbook has
    it disabled; a pattern such as ``host.*`` picks from the agents that the playbook runs. The comparison of hosts
    stands for the playbook's agents whose facts it compares.

    Raises:
        PlanError: an id or pattern fits no agent, or the agent needs limits that the playbook does not set.
    """
    if not ids:
        return tuple(agent for agent in agents if agent.id in playbook.agents)
    wanted: set[str] = set()
    for id_ in ids:
        if _WILD & set(id_):
            wanted.update(_matching(playbook, agents, id_))
        elif id_ == ODD_ONE_OUT.id:
            wanted.update(_compared(playbook, agents))
        else:
            wanted.add(_named(playbook, agents, id_))
    return tuple(agent for agent in agents if agent.id in wanted)


def compared(agents: Iterable[AnyAgent]) -> Iterable[AnyAgent]:
    """The agents whose facts are compared among hosts and GPUs."""
    return (agent for agent in agents if isinstance(agent, Agent) and agent.is_compared)


def _compared(playbook: Playbook, agents: Sequence[AnyAgent]) -> Iterable[str]:
    run = [agent.id for agent in compared(agents) if agent.id in playbook.agents]
    if not run:
        raise PlanError(
            f"playbook {playbook.name} runs no agent whose facts are compared",
            hint=f"See `gapline agents {ODD_ONE_OUT.id}` for those whose facts are.",
        )
    return run


def _matching(playbook: Playbook, agents: Sequence[AnyAgent], pattern: str) -> Iterable[str]:
    matches = [agent.id for agent in agents if fnmatchcase(agent.id, pattern)]
    run = [id_ for id_ in matches if id_ in playbook.agents]
    if run:
        return run
    if matches:
        raise PlanError(
            f"playbook {playbook.name} runs no agent that fits {pattern}",
            hint=f"Name an agent in full to run it all the same: {', '.join(matches)}.",
        )
    raise PlanError(f"no agent fits {pattern}", hint="`gapline agents` lists them.")


def _named(playbook: Playbook, agents: Sequence[AnyAgent], id_: str) -> str:
    known = {agent.id: agent for agent in agents}
    if id_ not in known:
        hint = did_you_mean(id_, known) or "`gapline agents` lists them."
        raise PlanError(f"there is no agent {id_!r}", hint=hint)
    missing = [name for name in known[id_].limits if name not in playbook.limits(id_)]
    if missing:
        raise PlanError(
            f"playbook {playbook.name} sets no {', '.join(missing)} for agent {id_}",
            hint="Write a playbook that extends it and sets the agent's limits.",
        )
    return id_
