"""Agents and their codes as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

from rich.console import Console
from rich.text import Text

from gapline.orchestrator.cli.registry import all_agents
from gapline.orchestrator.model.agent import Agent, AnyAgent, Code, FleetAgent, PairAgent
from gapline.orchestrator.model.errors import PlanError
from gapline.orchestrator.model.limit import Limit
from gapline.orchestrator.odd_one_out import AGENT as ODD_ONE_OUT
from gapline.orchestrator.playbook.load import load
from gapline.orchestrator.playbook.select import compared
from gapline.orchestrator.yaml_document.faults import did_you_mean

_SHIPPED = "full"
_WIDTH = 100


def everyone() -> tuple[AnyAgent | FleetAgent, ...]:
    """All that can say something: the agents, and behind them what compares their facts."""
    return (*all_agents(), ODD_ONE_OUT)


def find(agent_id: str) -> AnyAgent | FleetAgent:
    """The agent of that id.

    Raises:
        PlanError: there is none.
    """
    agents = {agent.id: agent for agent in everyone()}
    if agent_id not in agents:
        raise PlanError(f"there is no agent {agent_id}", hint=did_you_mean(agent_id, agents) or "See `gapline agents`.")
    return agents[agent_id]


def find_code(code: str) -> tuple[Code, AnyAgent | FleetAgent]:
    """A finding code and the agent that reports it.

    Raises:
        PlanError: no agent reports it.
    """
    codes = {one.code: (one, agent) for agent in everyone() for one in agent.codes}
    if code not in codes:
        raise PlanError(
            f"no agent reports {code}", hint=did_you_mean(code, codes) or "See `gapline agents ID` for codes."
        )
    return codes[code]


def tell(lines: Iterable[Text]) -> None:
    """Print them to standard output."""
    console = Console(highlight=False)
    for line in lines:
        console.print(line, soft_wrap=True)


def about_all(agents: Sequence[AnyAgent | FleetAgent]) -> Iterator[Text]:
    """A line for each."""
    levels = {id_: entry.level.value for id_, entry in load(_SHIPPED).entries.items()}
    for agent in agents:
        level = "always" if isinstance(agent, FleetAgent) else levels.get(agent.id, "-")
        yield Text.assemble((f"{agent.id:<30}", "bold"), f"layer {agent.layer.value}  {level:<7}", agent.title)


def about(agent: AnyAgent | FleetAgent) -> Iterator[Text]:
    """Everything about one agent."""
    yield Text(agent.id, "bold")
    yield Text(f"{agent.title}; layer {agent.layer.value}, {agent.layer.name.lower()}")
    if isinstance(agent, Agent):
        yield Text("\nreads", "dim")
        for source in agent.sources.values():
            yield Text(f"  {source.key}{'  (root)' if source.root else ''}")
        if agent.is_compared:
            yield Text.assemble(
                ("\ncompared by ", "dim"), f"{ODD_ONE_OUT.id}, among hosts with one label and GPUs of one host"
            )
    elif isinstance(agent, PairAgent):
        needed = ", ".join(fact.__name__ for fact in (*agent.needs, *agent.wants))
        yield Text.assemble(("\ncompares ", "dim"), needed)
    else:
        yield Text("\ncompares among hosts with one label, and among GPUs of one host, what these agents saw", "dim")
        yield from (Text(f"  {one.id}") for one in compared(all_agents()))
    limits = load(_SHIPPED).limits(agent.id)
    if limits:
        yield Text("\nlimits, as the playbook `full` sets them", "dim")
        yield from (_limit(name, limit) for name, limit in limits.items())
    yield Text("\nfindings", "dim")
    for code in agent.codes:
        yield Text.assemble(("  ", ""), (f"{code.code:<32}", "bold"), code.title)


def about_code(code: Code, agent: AnyAgent | FleetAgent) -> Iterator[Text]:
    """What a code means."""
    yield Text(code.code, "bold")
    yield Text(code.title)
    yield Text(fill(code.meaning, _WIDTH))
    yield Text.assemble(
        ("\nreported by ", "dim"), f"{agent.id} (layer {agent.layer.value}, {agent.layer.name.lower()})"
    )
    yield Text.assemble(("look again  ", "dim"), f"gapline rerun {agent.id}")


def as_json_text(agents: Sequence[AnyAgent | FleetAgent]) -> str:
    """The agents as JSON, schema `gapline/agents/1`."""
    playbook = load(_SHIPPED)
    document = {
        "schema": "gapline/agents/1",
        "agents": [
            {
                "id": agent.id,
                "title": agent.title,
                "layer": agent.layer.value,
                "scope": agent.scope.value,
                "sources": {name: source.key for name, source in agent.sources.items()}
                if isinstance(agent, Agent)
                else {},
                "limits": {name: limit.model_dump(mode="json") for name, limit in playbook.limits(agent.id).items()},
                "codes": [{"code": one.code, "title": one.title, "meaning": one.meaning} for one in agent.codes],
            }
            for agent in agents
        ],
    }
    return json.dumps(document, indent=1)


def _limit(name: str, limit: Limit) -> Text:
    value = ", ".join(limit.value) if isinstance(limit.value, tuple) else str(limit.value)
    return Text.assemble(("  ", ""), (f"{name} = {value}", "bold"), f"\n    {limit.origin}")
