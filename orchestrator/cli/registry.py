"""The agents there are: found in the package, and offered by other distributions through entry points."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import walk_packages

from gapline import agents
from gapline.orchestrator.model.agent import Agent, AnyAgent, PairAgent, Scope
from gapline.orchestrator.model.errors import ConfigError

GROUP = "gapline.agents"
"""The entry-point group for agents of third parties: each entry names an `Agent` or `PairAgent` object."""

_ORDER = (Scope.HOST, Scope.CONTAINER, Scope.PAIR)


@cache
def all_agents() -> tuple[AnyAgent, ...]:
    """Every agent, hosts' first, pairs' last, by id within.

    Raises:
        ConfigError: two agents have one id, or an entry point does not bring an agent.
    """
    found: dict[str, tuple[AnyAgent, str]] = {}
    for agent, origin in (*_own(), *_third_party()):
        if agent.id in found:
            hint = f"Uninstall one of the two, or give one of them another id: {origin}"
            raise ConfigError(f"two agents are called {agent.id}: {found[agent.id][1]} and {origin}", hint=hint)
        found[agent.id] = (agent, origin)
    return tuple(
        sorted((agent for agent, _ in found.values()), key=lambda agent: (_ORDER.index(agent.scope), agent.id))
    )


def _own() -> Iterator[tuple[AnyAgent, str]]:
    for module in walk_packages(agents.__path__, f"{agents.__name__}."):
        agent = getattr(import_module(module.name), "AGENT", None)
        if isinstance(agent, Agent | PairAgent):
            yield agent, module.name


def _third_party() -> Iterator[tuple[AnyAgent, str]]:
    for entry in entry_points(group=GROUP):
        yield _loaded(entry), f"{entry.value} ({entry.dist.name if entry.dist else 'unknown distribution'})"


def _loaded(entry: EntryPoint) -> AnyAgent:
    hint = f"Fix or uninstall {entry.dist.name if entry.dist else 'the distribution that brings it'}."
    try:
        agent = entry.load()
    except Exception as error:
        raise ConfigError(f"agent entry point {entry.value}: {type(error).__name__}: {error}", hint=hint) from error
    if not isinstance(agent, Agent | PairAgent):
        raise ConfigError(f"agent entry point {entry.value}: is no Agent, it is a {type(agent).__name__}", hint=hint)
    return agent
