"""How targets are entered in the run: hosts as they were met, containers as their host lists them. Pure."""

from __future__ import annotations

from gapline.orchestrator.discovery.containers import Containers as ContainerList
from gapline.orchestrator.discovery.containers import SeenContainer
from gapline.orchestrator.discovery.identity import Identity
from gapline.orchestrator.inventory.host import Become, ContainerEntry, Containers, Host, Reach
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import TargetEntry, TargetKind
from gapline.orchestrator.transport.route import Route

NAMED = "named by the inventory or the command line"


def host_entry(
    host: Host, met: Identity | None, met_at: float | None, route: Route | None, problem: Problem | None
) -> TargetEntry:
    """The entry of a host; `met_at` is our clock when it told its own."""
    skew = host.recorded_skew
    if host.reach is not Reach.REPLAY and met is not None and met.epoch is not None and met_at is not None:
        skew = round(met.epoch - met_at, 1)
    return TargetEntry(
        id=host.name,
        kind=met.kind if met else TargetKind.UNREACHED,
        parent=None,
        route=host.reach.value,
        name=met.hostname if met else "",
        boot_id=met.boot_id if met else None,
        uptime_seconds=met.uptime_seconds if met else None,
        privilege=_privilege(host, met),
        load=met.load if met else None,
        clock_skew_seconds=skew,
        audited=True,
        reason=NAMED if host.host_too else "the host of a container in question",
        problem=problem,
        labels=host.labels,
        connections=route.connections if route else 0,
        sessions=route.sessions if route else 0,
    )


def container_entry(
    host: Host, container: SeenContainer, *, declared: ContainerEntry | None, audited: bool
) -> TargetEntry:
    """The entry of a container that its host lists."""
    if declared is not None:
        reason = NAMED
    elif not audited and container.gpu and host.containers is not Containers.AUTO:
        reason = "not asked for"
    else:
        reason = container.gpu or "no NVIDIA node or major in its configuration, no GPU process in it"
    route = f"ssh {declared.ssh.address}" if declared and declared.ssh else f"lxc-attach via {host.name}"
    told = reason if container.init else f"{reason}; it is {container.state.lower()}"
    return _container(host, container.name, told, route if audited else None)


def absent_entry(host: Host, name: str, listed: ContainerList) -> TargetEntry:
    """The entry of a container that was asked for and that its host does not have, or could not list."""
    others = ", ".join(container.name for container in listed.seen) or "none"
    problem = listed.problem or Problem(
        kind=ProblemKind.MISSING,
        detail=f"{host.name} has no container {name}",
        hint=f"It has: {others}. See `gapline discover {host.name}`.",
    )
    return _container(host, name, NAMED, f"lxc-attach via {host.name}", problem)


def _container(host: Host, name: str, reason: str, route: str | None, problem: Problem | None = None) -> TargetEntry:
    """`route` None: it is listed only."""
    return TargetEntry(
        id=f"{host.name}/{name}",
        kind=TargetKind.LXC_CONTAINER,
        parent=host.name,
        route=route or "none",
        name=name,
        boot_id=None,
        uptime_seconds=None,
        privilege=None,
        load=None,
        clock_skew_seconds=None,
        audited=route is not None,
        reason=reason,
        problem=problem,
    )


def _privilege(host: Host, met: Identity | None) -> str | None:
    if met is None or met.user is None:
        return None
    if host.become is not Become.NONE:
        return host.become.value
    return "root" if met.root else f"user {met.user}"
