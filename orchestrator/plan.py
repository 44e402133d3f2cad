"""What will be read, where and by which lane: decided before the first connection, and printed by `gapline plan`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gapline.orchestrator.collect.group import process
from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.discovery import containers, identity, nodes
from gapline.orchestrator.discovery.containers import SeenContainer, State
from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.model.agent import Agent, AnyAgent, PairAgent, Scope
from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat, Vantage

SURVEY: Mapping[str, Source] = {"nodes": nodes.BEFORE, **identity.SOURCES, **containers.SOURCES}
"""What is read on every host before anything else is decided."""

PRESENT = File("/proc/{init}/stat")
"""Read behind everything else that the host says about a running container: proof that its init was there all along."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One audit: these hosts, these agents with these limits. Values only; nothing has been contacted."""

    playbook: str
    fail_on: Severity | None
    hosts: tuple[Host, ...]
    agents: tuple[AnyAgent, ...]
    limits: Mapping[str, Limits]  # by agent id
    allow_init: bool = False  # commands that may wake the driver also run where it is not up

    @property
    def pairs(self) -> tuple[PairAgent, ...]:
        """The agents that compare a container with its host."""
        return tuple(agent for agent in self.agents if isinstance(agent, PairAgent))

    def readers(self, scope: Scope) -> tuple[Agent[Any], ...]:
        """The agents that read targets of one kind."""
        return tuple(agent for agent in self.agents if isinstance(agent, Agent) and agent.scope is scope)

    def host_readers(self, host: Host) -> tuple[Agent[Any], ...]:
        """The agents for this host: all, or when only containers were asked for those whose facts pairs need."""
        readers = self.readers(Scope.HOST)
        if host.host_too:
            return readers
        wanted = {fact for pair in self.pairs for fact in (*pair.needs, *pair.wants)}
        return tuple(agent for agent in readers if agent.fact in wanted)


@dataclass(frozen=True, slots=True)
class Lanes:
    """A host's readings by lane. What is in `last` runs after every other reading of the host and its containers:
    it could change what they see.
    """

    quick: tuple[Item, ...]
    slow: tuple[Item, ...]
    last: tuple[Item, ...]

    @property
    def first(self) -> tuple[Item, ...]:
        """What one script reads: the quick readings before the slow ones."""
        return (*self.quick, *self.slow)


def with_needed(chosen: Iterable[AnyAgent], everyone: Iterable[AnyAgent]) -> tuple[AnyAgent, ...]:
    """The chosen agents and every agent whose fact a chosen pair agent needs or wants, in the order of `everyone`."""
    everyone = tuple(everyone)
    chosen_ids = {agent.id for agent in chosen}
    facts = {
        fact
        for agent in everyone
        if isinstance(agent, PairAgent) and agent.id in chosen_ids
        for fact in (*agent.needs, *agent.wants)
    }
    return tuple(
        agent for agent in everyone if agent.id in chosen_ids or (isinstance(agent, Agent) and agent.fact in facts)
    )


def with_pairs(chosen: Iterable[AnyAgent], everyone: Iterable[AnyAgent]) -> tuple[AnyAgent, ...]:
    """The chosen agents and every pair agent that judges by one of their facts: what a repair can change."""
    chosen, everyone = tuple(chosen), tuple(everyone)
    ids = {agent.id for agent in chosen}
    facts = {agent.fact for agent in chosen if isinstance(agent, Agent)}
    return tuple(
        agent
        for agent in everyone
        if agent.id in ids or (isinstance(agent, PairAgent) and facts & {*agent.needs, *agent.wants})
    )


def host_lanes(plan: Plan, host: Host) -> Lanes:
    """The readings on a host. Files come before commands, and what may wake a GPU last."""
    sources = _distinct(SURVEY.values(), *(agent.sources.values() for agent in plan.host_readers(host)))
    items = tuple(Item(host.name, source) for source in sorted(sources, key=_order))
    waking = tuple(item for item in items if _wakes(item.source))
    return Lanes(
        quick=tuple(item for item in items if _is_quick(item.source)),
        slow=tuple(item for item in items if not _is_quick(item.source) and not _wakes(item.source)),
        last=waking and (*waking, Item(host.name, nodes.AFTER)),
    )


def container_items(plan: Plan, host: Host, container: SeenContainer) -> tuple[Item, ...]:
    """The readings of one container: those from its host, the proof that it was there, those inside."""
    target = f"{host.name}/{container.name}"
    binding = Binding(container.name, container.init, container.config, container.cgroup)
    return tuple(
        Item(target, source, binding, container.name if source.vantage is Vantage.INSIDE else None)
        for source in all_sources(plan.agents, Scope.CONTAINER)
    )


def frozen(container: SeenContainer, item: Item) -> Problem | None:
    """Why nobody is sent into a frozen container; None for every other container or reading."""
    if container.state is not State.FROZEN or item.enter is None:
        return None
    return Problem(
        kind=ProblemKind.NOT_ENTERED,
        detail=f"container {container.name} is frozen: a process sent into it would hang",
        hint=f"Thaw it with `lxc-unfreeze -n {container.name}` and run the agent again.",
    )


def _inside(source: Source) -> bool:
    return source.vantage is Vantage.INSIDE


def _order(source: Source) -> tuple[int, bool, bool]:
    """The nodes before everything; then side by side what one process can read."""
    kinds = (Stat, File | Glob, Script, Command)
    kind = next(place for place, kind in enumerate(kinds) if isinstance(source, kind))
    return kind, process(source) is None, source.root


def _is_quick(source: Source) -> bool:
    """Files, and the two scripts that tell what the host is: everything else waits for nobody but itself."""
    return not isinstance(source, Command | Script) or source in SURVEY.values()


def _wakes(source: Source) -> bool:
    return isinstance(source, Command | Script) and source.wakes_gpu


def _distinct(*groups: Iterable[Source]) -> Iterator[Source]:
    """Equal sources once, in the order of their first appearance."""
    return iter(dict.fromkeys(source for group in groups for source in group))


def all_sources(agents: Sequence[AnyAgent], scope: Scope) -> tuple[Source, ...]:
    """Every source that is read for the agents of one kind, each once; for containers in the order of reading."""
    own = tuple(
        _distinct(*(agent.sources.values() for agent in agents if isinstance(agent, Agent) and agent.scope is scope))
    )
    if scope is Scope.HOST:
        again = (nodes.AFTER,) if any(_wakes(source) for source in own) else ()
        return tuple(_distinct(SURVEY.values(), own, again))
    outside: list[Source] = []
    inside: list[Source] = []
    for source in sorted(own, key=_order):
        (inside if _inside(source) else outside).append(source)
    proof = (PRESENT,) if any("{init}" in source.key for source in outside) else ()
    return tuple(_distinct(outside, proof, inside))
