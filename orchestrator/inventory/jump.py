"""Jump hosts: the fleet's own names in a chain become addresses, with the jumps that those hosts need themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gapline.orchestrator.inventory.address import Address, parse_address
from gapline.orchestrator.inventory.host import Containers, Host
from gapline.orchestrator.inventory.settings import NO_JUMP
from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.yaml_document.faults import Faults
from gapline.orchestrator.yaml_document.node import Place
from gapline.orchestrator.yaml_document.read import Section

LONGEST_CHAIN = 8


def resolve_jumps(hosts: Mapping[str, Host], section: Section, faults: Faults) -> dict[str, Host]:
    """The hosts, and the containers with an ssh of their own, with chains that need no inventory any more."""
    resolved = dict(hosts)
    for name, host in hosts.items():
        try:
            resolved[name] = _resolved(host, hosts, section.place_of(name))
        except ConfigError as error:
            faults.add(error)
    return resolved


def _resolved(host: Host, hosts: Mapping[str, Host], place: Place) -> Host:
    jump = _jump(host, hosts, place)
    if isinstance(host.containers, Containers):
        return replace(host, jump=jump) if jump != host.jump else host
    entries = tuple(
        replace(entry, ssh=replace(entry.ssh, jump=_jump(entry.ssh, hosts, place))) if entry.ssh else entry
        for entry in host.containers
    )
    return replace(host, jump=jump, containers=entries)


def _jump(host: Host, hosts: Mapping[str, Host], place: Place) -> str | None:
    chain = _hops(host)
    if not chain:
        return host.jump
    passed = [host]
    while (first := hosts.get(chain[0].host)) is not None:
        if first.name in {one.name for one in passed}:
            way = " → ".join(one.name for one in (*passed, first))
            raise place.fault(f"{host.name} is reached through itself: {way}", "Give one of them `jump: none`.")
        passed.append(first)
        before = _hops(first)
        if not before:
            break
        chain = (*before, *chain)
        if len(chain) > LONGEST_CHAIN:
            raise place.fault(f"more than {LONGEST_CHAIN} jump hosts on the way to {host.name}")
    return ",".join(str(_by_address(hop, hosts.get(hop.host))) for hop in chain)


def _by_address(hop: Address, named: Host | None) -> Address:
    if named is None:
        return hop
    return Address(named.address, hop.user or named.user, hop.port or named.port)


def _hops(host: Host) -> tuple[Address, ...]:
    if host.jump is None or host.jump == NO_JUMP:
        return ()
    return tuple(parse_address(hop) for hop in host.jump.split(","))
