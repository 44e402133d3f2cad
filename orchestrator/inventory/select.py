"""What the command line asks for, resolved against the fleet: `user@host`, names, groups, `host/129`, `local`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gapline.orchestrator.inventory.address import parse_address
from gapline.orchestrator.inventory.fleet import Fleet
from gapline.orchestrator.inventory.host import ContainerEntry, Containers, Host, Reach
from gapline.orchestrator.inventory.settings import LOCAL, NAME
from gapline.orchestrator.model.errors import PlanError
from gapline.orchestrator.yaml_document.faults import did_you_mean, nearest

_FORMS = "A target is user@host[:port], a name or group of the fleet file, host/129 or local."


@dataclass(frozen=True, slots=True)
class _Wish:
    """One host that was asked for: the host itself, or one container of it."""

    host: Host
    container: ContainerEntry | None = None


def select(fleet: Fleet | None, targets: Sequence[str]) -> tuple[Host, ...]:
    """The hosts to audit, in the order in which they were asked for, each once; no target means the whole fleet.

    A container that is asked for without its host comes as that host with `host_too=False`.

    Raises:
        PlanError: a target is no target, looks like a misspelled name of the fleet, or is asked for in two ways.
    """
    if not targets:
        if fleet is None:
            raise PlanError("there is nothing to audit", hint=f"Name a target, or a fleet file with -i. {_FORMS}")
        return tuple(fleet.hosts.values())
    wishes: dict[str, list[_Wish]] = {}
    for target in targets:
        for wish in _wishes(fleet, target):
            wishes.setdefault(wish.host.name, []).append(wish)
    return tuple(_merged(of_host) for of_host in wishes.values())


def _wishes(fleet: Fleet | None, target: str) -> tuple[_Wish, ...]:
    if not target.isprintable() or " " in target or target.startswith("-") or not target:
        raise PlanError(f"{target!r} is not a target", hint=_FORMS)
    if fleet is not None and target in fleet.groups:
        return tuple(_Wish(host) for host in fleet.members(target))
    machine, slash, container = target.partition("/")
    if not slash:
        return (_Wish(_host(fleet, machine)),)
    if fleet is not None and machine in fleet.groups:
        raise PlanError(f"{target}: {machine} is a group, not a host", hint="Name the host that holds the container.")
    if not NAME.fullmatch(container):
        raise PlanError(f"{target}: {container!r} is not a container's name", hint=_FORMS)
    host = _host(fleet, machine)
    return (_Wish(host, _entry(host, container)),)


def _host(fleet: Fleet | None, written: str) -> Host:
    if fleet is not None and written in fleet.hosts:
        return fleet.hosts[written]
    if written == LOCAL:
        return Host(name=LOCAL, address="localhost", reach=Reach.LOCAL)
    try:
        address = parse_address(written)
    except ValueError as error:
        raise PlanError(f"{written}: {error}", hint=_FORMS) from error
    known = _known(fleet, address.host)
    if known is not None:
        if known.reach is Reach.LOCAL:
            raise PlanError(
                f"{written}: {known.name} is this machine, where nobody logs in", hint=f"Ask for {known.name}."
            )
        return replace(known, user=address.user or known.user, port=address.port or known.port)
    if fleet is not None and written == address.host and nearest(written, _names(fleet)):
        hint = f"{did_you_mean(written, _names(fleet))} A host outside the fleet is written user@{written}."
        raise PlanError(f"{written} is not in {fleet.path}", hint=hint)
    return Host(name=_id(address.host, address.port), address=address.host, user=address.user, port=address.port)


def _known(fleet: Fleet | None, host: str) -> Host | None:
    """The fleet's host of that name, or the only one that has that address."""
    if fleet is None:
        return None
    if host in fleet.hosts:
        return fleet.hosts[host]
    there = [one for one in fleet.hosts.values() if one.address == host and one.reach is Reach.SSH]
    return there[0] if len(there) == 1 else None


def _names(fleet: Fleet) -> tuple[str, ...]:
    return (*fleet.hosts, *fleet.groups)


def _id(host: str, port: int | None) -> str:
    """The target id of a host that no fleet names. The user is no part of it: the findings are the machine's."""
    if port is None:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _entry(host: Host, container: str) -> ContainerEntry:
    """The container as the fleet lists it, or by its bare name."""
    listed = host.containers if isinstance(host.containers, tuple) else ()
    return next((entry for entry in listed if entry.name == container), ContainerEntry(name=container))


def _merged(wishes: Sequence[_Wish]) -> Host:
    """All that was asked for on one host."""
    host = wishes[0].host
    for wish in wishes:
        if wish.host != host:
            raise PlanError(
                f"{host.name} is asked for as {_login(host)} and as {_login(wish.host)}",
                hint="Audit a machine once in a run.",
            )
    entries = tuple({wish.container.name: wish.container for wish in wishes if wish.container}.values())
    if all(wish.container for wish in wishes):
        return replace(host, containers=entries, host_too=False)
    if not entries:
        return host
    if host.containers is Containers.AUTO:
        return replace(host, declared=entries)
    listed = host.containers if isinstance(host.containers, tuple) else ()
    return replace(host, containers=(*listed, *(entry for entry in entries if entry not in listed)))


def _login(host: Host) -> str:
    user = f"{host.user}@" if host.user else ""
    return f"{user}{_id(host.address, host.port)}"
