"""One host and its containers, from connecting to the last outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import time  # noqa: TID251 - the edge: a target's clock is compared with ours

import anyio
from anyio.abc import TaskGroup

from gapline.orchestrator.audit.entries import absent_entry, container_entry, host_entry
from gapline.orchestrator.audit.log import log_capture
from gapline.orchestrator.audit.pair_desk import PairDesk
from gapline.orchestrator.audit.presence import Presence
from gapline.orchestrator.audit.progress import AgentJudged, HostFinished, HostStarted, Observe, TargetPlanned
from gapline.orchestrator.audit.target_desk import Clock, Judging, TargetDesk
from gapline.orchestrator.collect.diagnose import withheld
from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.lane import run_lane
from gapline.orchestrator.collect.reading import unfinished
from gapline.orchestrator.discovery.containers import SOURCES as CONTAINER_SOURCES
from gapline.orchestrator.discovery.containers import SeenContainer, containers
from gapline.orchestrator.discovery.identity import IDENTITY, identity
from gapline.orchestrator.discovery.identity import SOURCES as IDENTITY_SOURCES
from gapline.orchestrator.discovery.nodes import changed, none_there
from gapline.orchestrator.inventory.host import ContainerEntry, Containers, Host
from gapline.orchestrator.judged import Judged
from gapline.orchestrator.model.agent import Scope
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import TransportError
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import TargetEntry
from gapline.orchestrator.model.source import Source
from gapline.orchestrator.plan import Plan, container_items, frozen, host_lanes
from gapline.orchestrator.transport.route import Route

Connect = Callable[[Host], Awaitable[Route]]


@dataclass(frozen=True, slots=True)
class AuditedTarget:
    """One target with all that came of it. `captures` is None for targets that were only listed."""

    entry: TargetEntry
    judged: tuple[Judged, ...]
    captures: dict[str, Capture] | None


class HostAudit:
    """Runs one host. Use once."""

    def __init__(self, plan: Plan, host: Host, connect: Connect, clock: Clock, observe: Observe) -> None:
        self._plan, self._host, self._connect = plan, host, connect
        self._observe = observe
        self._judging = Judging(plan.limits, clock, self._report)
        self._judged: dict[str, list[Judged]] = {}
        self._desk = self._new_desk(host.name, Scope.HOST)
        self._desks = {host.name: self._desk}
        self._pairs: list[PairDesk] = []
        self._presence = Presence()
        self._awaited: set[str] = set()  # quick readings that have not come
        self._surveyed = anyio.Event()
        self._entries: list[TargetEntry] = []
        self._met_at: float | None = None  # by our clock, when it said who it is
        self._unlisted: Problem | None = None  # why its containers could not be listed

    async def run(self) -> tuple[AuditedTarget, ...]:
        """Audit it. Connection errors become the outcomes' problems; only cancellation gets out."""
        self._observe(HostStarted(self._host.name))
        self._observe(TargetPlanned(self._host.name, self._desk.agents))
        problem: Problem | None = None
        route: Route | None = None
        try:
            route = await self._connect(self._host)
            problem = await self._collect(route)
        except TransportError as error:
            problem = error.problem
        finally:
            if route is not None:
                with anyio.CancelScope(shield=True):
                    await route.close()
        self._finish(problem)
        self._observe(HostFinished(self._host.name, problem))
        results = self._results(route, problem)
        # Desks hold us and we hold them: without this, a thousand hosts wait for the collector of cycles.
        self._desks.clear()
        self._pairs.clear()
        del self._desk, self._judging
        return results

    async def _collect(self, route: Route) -> Problem | None:
        """Run the lanes: one on the host, and as soon as its quick readings tell what there is, one for its containers
        and for what may wake a GPU. The first problem that cost a lane.
        """
        lanes = host_lanes(self._plan, self._host)
        problems: list[Problem] = []

        async def lane(items: Sequence[Item]) -> None:
            if (problem := await self._lane(route, items, self._host)) is not None:
                problems.append(problem)

        async def first() -> None:
            await lane(lanes.first)
            self._surveyed.set()

        self._awaited = {item.source.key for item in lanes.quick}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first)
            await self._surveyed.wait()
            if not problems:
                await lane([*self._enter(tasks), *self._last(lanes.last)])
        return problems[0] if problems else None

    async def _lane(self, route: Route, items: Sequence[Item], host: Host) -> Problem | None:
        """Read the items; the problem that ended the route, which is that of every item it cost."""
        error = await run_lane(
            route, items, become=host.become, deliver=self._receive, allow_init=self._plan.allow_init
        )
        return error.problem if error is not None else None

    def _last(self, items: Sequence[Item]) -> Sequence[Item]:
        """What may wake a GPU. Where the nodes are known to be absent nobody is sent to find that out once more."""
        if self._plan.allow_init or not none_there(self._desk.captures):
            return items
        for item in items:
            self._receive(unfinished(item, withheld()))
        return ()

    def _enter(self, tasks: TaskGroup) -> tuple[Item, ...]:
        """Start on the containers that have their own SSH; what is to be read through the host comes back."""
        through_host: list[Item] = []
        for container, entry in self._chosen():
            items = container_items(self._plan, self._host, container)
            if entry is not None and entry.ssh is not None:
                direct = tuple(replace(item, enter=None) for item in items if item.enter is not None)
                tasks.start_soon(self._by_ssh, entry.ssh, direct)
                items = tuple(item for item in items if item.enter is None)
            for item in items:
                if (problem := frozen(container, item)) is not None:
                    self._receive(unfinished(item, problem))
                else:
                    through_host.append(item)
        return tuple(through_host)

    async def _by_ssh(self, ssh: Host, items: Sequence[Item]) -> None:
        """Read a container by its own SSH. What goes wrong there is the container's problem, not its host's."""
        try:
            route = await self._connect(ssh)
        except TransportError as error:
            for item in items:
                self._receive(unfinished(item, error.problem))
            return
        try:
            await self._lane(route, items, ssh)
        finally:
            with anyio.CancelScope(shield=True):
                await route.close()

    def _chosen(self) -> tuple[tuple[SeenContainer, ContainerEntry | None], ...]:
        """The containers to audit, each with its desk made; all others are entered as listed only."""
        seen = containers(self._survey(CONTAINER_SOURCES))
        listed = self._host.containers if isinstance(self._host.containers, tuple) else ()
        declared = {entry.name: entry for entry in (*listed, *self._host.declared)}
        chosen = []
        for container in seen.seen:
            entry = declared.get(container.name)
            wanted = entry is not None or (self._host.containers is Containers.AUTO and bool(container.gpu))
            self._entries.append(container_entry(self._host, container, declared=entry, audited=wanted))
            if wanted:
                self._open_desk(container)
                chosen.append((container, entry))
        absent = declared.keys() - {container.name for container in seen.seen}
        self._entries.extend(absent_entry(self._host, name, seen) for name in sorted(absent))
        self._unlisted = seen.problem if self._host.containers is not Containers.NONE else None
        return tuple(chosen)

    def _open_desk(self, container: SeenContainer) -> None:
        target = f"{self._host.name}/{container.name}"
        desk = self._desks[target] = self._new_desk(target, Scope.CONTAINER)
        pairs = self._plan.pairs
        self._pairs.append(PairDesk(self._desk, desk, pairs, self._judging))
        self._observe(TargetPlanned(target, desk.agents + len(pairs)))

    def _new_desk(self, target: str, scope: Scope) -> TargetDesk:
        agents = self._plan.host_readers(self._host) if scope is Scope.HOST else self._plan.readers(scope)
        return TargetDesk(target, agents, self._judging)

    def _receive(self, capture: Capture) -> None:
        if capture.source == IDENTITY.key:
            self._met_at = time()
        if capture.target == self._host.name:
            self._awaited.discard(capture.source)
            if not self._awaited:
                self._surveyed.set()
        for released in self._presence.pass_on(capture):
            log_capture(released)
            self._desks[released.target].receive(released)
        for pair in self._pairs:
            pair.look()

    def _report(self, judged: Judged) -> None:
        self._judged.setdefault(judged.target, []).append(judged)
        self._observe(AgentJudged(judged.target, judged.agent.id, judged.outcome))

    def _finish(self, problem: Problem | None) -> None:
        """Every agent that has not answered yet answers now."""
        lost = problem or Problem(kind=ProblemKind.DROPPED, detail="its sources were never read")
        for desk in self._desks.values():
            desk.give_up(lost)
        for pair in self._pairs:
            pair.look(final=True)

    def _survey(self, sources: Mapping[str, Source]) -> dict[str, Capture]:
        """The survey's captures by name; an empty one with a problem stands for what never came."""
        never = Problem(kind=ProblemKind.DROPPED, detail="it was never read")
        return {
            name: self._desk.captures.get(source.key, Capture(self._host.name, source.key, source.key, problem=never))
            for name, source in sources.items()
        }

    def _results(self, route: Route | None, problem: Problem | None) -> tuple[AuditedTarget, ...]:
        met = identity(self._survey(IDENTITY_SOURCES)) if route is not None and self._met_at is not None else None
        flaw = problem or self._unlisted or changed(self._desk.captures)
        own = host_entry(self._host, met, self._met_at, route, flaw)
        return tuple(
            AuditedTarget(entry, tuple(self._judged.get(entry.id, ())), self._captures(entry.id))
            for entry in (own, *self._entries)
        )

    def _captures(self, target: str) -> dict[str, Capture] | None:
        desk = self._desks.get(target)
        return desk.captures if desk is not None else None
