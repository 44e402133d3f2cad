"""The agents under test, their playbook and their folders."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import gapline.agents
from gapline.orchestrator.model.agent import Agent, AnyAgent
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.playbook.load import load
from gapline.orchestrator.playbook.playbook import Playbook

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs" / "agents"


@cache
def all_agents() -> tuple[AnyAgent, ...]:
    """Every module-level AGENT below gapline.agents, in the order of their ids."""
    return tuple(sorted(_walk(), key=lambda agent: agent.id))


def _walk() -> Iterator[AnyAgent]:
    for module in pkgutil.walk_packages(gapline.agents.__path__, "gapline.agents."):
        agent = getattr(import_module(module.name), "AGENT", None)
        if agent is not None:
            yield agent


def agent_called(id_: str) -> AnyAgent:
    """The one with that id."""
    return next(agent for agent in all_agents() if agent.id == id_)


def agent_with(fact: type[Fact]) -> Agent[Fact]:
    """The one that gives that fact."""
    return next(agent for agent in all_agents() if isinstance(agent, Agent) and agent.fact is fact)


@cache
def full_playbook() -> Playbook:
    """The shipped playbook that holds all limits."""
    return load("full")
