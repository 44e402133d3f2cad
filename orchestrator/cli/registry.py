"""The agents there are: found in the package, and offered by other distributions through entry points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules, walk_packages

from gapline import agents
from gapline.orchestrator.model.agent import Agent, AnyAgent, PairAgent, Scope
from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.plan import with_pairs

GROUP = "gapline.agents"
"""The entry-point group for agents of third parties: each entry names an `Agent` or `PairAgent` object."""

_ORDER = (Scope.HOST, Scope.CONTAINER, Scope.PAIR)


@cache
def all_agents() -> tuple[AnyAgent, ...]:
    """Every agent, hosts' first, pairs' last, by id within.

    Raises:
        ConfigError: two agents have one id, or an entry point does not bring an agent.
    """
    return _in_order((*_own(), *_third_party()))


def agents_for(ids: Sequence[str]) -> tuple[AnyAgent, ...]:
    """The agents with these ids among all that one must know to run them; as few as the ids allow, in the same order.

    An agent lies in the module that its id names, so that who asks for one of them need not wait until all are
    imported. All are where an id is a pattern or unknown, and where a pair agent judges by one of the agents.

    Raises:
        ConfigError: as above.
    """
    few = _in_order((*_named_or_pairs(ids), *_third_party()))
    asked = tuple(agent for agent in few if agent.id in ids)
    alone = not any(isinstance(agent, PairAgent) for agent in with_pairs(asked, few))
    return few if alone and {agent.id for agent in asked} == set(ids) else all_agents()


def _in_order(offered: Iterable[tuple[AnyAgent, str]]) -> tuple[AnyAgent, ...]:
    found: dict[str, tuple[AnyAgent, str]] = {}
    for agent, origin in offered:
        if agent.id in found:
            hint = f"Uninstall one of the two, or give one of them another id: {origin}"
            raise ConfigError(f"two agents are called {agent.id}: {found[agent.id][1]} and {origin}", hint=hint)
        found[agent.id] = (agent, origin)
    return tuple(
        sorted((agent for agent, _ in found.values()), key=lambda agent: (_ORDER.index(agent.scope), agent.id))
    )


def _own() -> Iterator[tuple[AnyAgent, str]]:
    yield from _in_modules(module.name for module in walk_packages(agents.__path__, f"{agents.__name__}."))


def _named_or_pairs(ids: Sequence[str]) -> Iterator[tuple[AnyAgent, str]]:
    wanted = {f"{agents.__name__}.{id_}" for id_ in ids}
    for scope in _ORDER:
        package = f"{agents.__name__}.{scope.value}"
        names = (module.name for module in iter_modules(import_module(package).__path__, f"{package}."))
        yield from _in_modules(name for name in names if scope is Scope.PAIR or name in wanted)


def _in_modules(names: Iterable[str]) -> Iterator[tuple[AnyAgent, str]]:
    for name in names:
        agent = getattr(import_module(name), "AGENT", None)
        if isinstance(agent, Agent | PairAgent):
            yield agent, name


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
