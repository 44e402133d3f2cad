"""The fleet file: its hosts and groups, with all faults reported at once.

::

    version: 1
    defaults: {user: audit, become: sudo}
    hosts:
      pve1: {address: 192.0.2.11, containers: [129, 130]}
      pve2:
    groups:
      rack-a: [pve1, pve2]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapline.orchestrator.inventory.groups import read_groups
from gapline.orchestrator.inventory.host import ContainerEntry, Containers, Host, Reach
from gapline.orchestrator.inventory.jump import resolve_jumps
from gapline.orchestrator.inventory.settings import (
    CONNECTION,
    DEFAULTS,
    HOST,
    LOCAL,
    NAME,
    SSH_ONLY,
    NamedContainer,
    name,
    read_settings,
)
from gapline.orchestrator.yaml_document import load as document
from gapline.orchestrator.yaml_document.faults import Faults
from gapline.orchestrator.yaml_document.node import Node, Scalar
from gapline.orchestrator.yaml_document.read import Section, versioned

_KEYS = ("version", "defaults", "hosts", "groups")


@dataclass(frozen=True, slots=True)
class Fleet:
    """The hosts of a fleet file by name, in its order, and the members of each group as written."""

    path: Path
    hosts: Mapping[str, Host]
    groups: Mapping[str, tuple[str, ...]]

    def members(self, group: str) -> tuple[Host, ...]:
        """All hosts of a group and of the groups in it, each once, in the order of the file."""
        waiting, seen = [group], {group}
        while waiting:
            new = [member for member in self.groups.get(waiting.pop(), ()) if member not in seen]
            seen.update(new)
            waiting.extend(new)
        return tuple(host for host in self.hosts.values() if host.name in seen)


def load(path: Path) -> Fleet:
    """Read a fleet file.

    Raises:
        ConfigError: the file cannot be read, or holds faults; all of them, each with its place.
    """
    return parse(document.read(path), path)


def parse(data: bytes, path: Path) -> Fleet:
    """As `load`, from bytes that were read already; relative paths in it start at the folder of `path`."""
    faults = Faults()
    root = versioned(document.parse(data, path, faults), "the fleet file", _KEYS, faults)
    defaults = root.section("defaults", "defaults", DEFAULTS)
    base = read_settings(defaults, DEFAULTS) if defaults else {}
    hosts = _hosts(root, base, faults)
    groups = root.section("groups", "groups")
    members = read_groups(groups, hosts, faults) if groups else {}
    faults.stop_if_any()
    return Fleet(path, hosts, members)


def _hosts(root: Section, base: Mapping[str, Any], faults: Faults) -> dict[str, Host]:
    section = root.section("hosts", "hosts")
    if section is None:
        root.need("hosts", name, "A fleet names at least one host.")
        return {}
    hosts = {key.text: _host(key, node, base, faults) for key, node in section.entries()}
    if not hosts and not faults:
        faults.add(section.place.fault("hosts is empty", "A fleet names at least one host."))
    return resolve_jumps(hosts, section, faults)


def _host(key: Scalar, node: Node, base: Mapping[str, Any], faults: Faults) -> Host:
    """A host from its own settings and the defaults. A faulty one comes out too, so that groups can name it."""
    section = Section(node, f"host {key.shown}", faults, HOST)
    own = read_settings(section, HOST)
    local = own.pop("reach", None) == Reach.LOCAL
    _check_name(key, faults, local=local)
    if local:
        for setting in SSH_ONLY & own.keys():
            faults.add(section.place_of(setting).fault(f"{setting} has no meaning with `reach: local`"))
        base = {setting: value for setting, value in base.items() if setting not in SSH_ONLY}
    settings = {"address": "localhost" if local else key.text, **base, **own}
    settings["containers"] = _entries(key.text, settings.get("containers", Containers.AUTO), base)
    return Host(name=key.text, reach=Reach.LOCAL if local else Reach.SSH, place=key.place.cited, **settings)


def _check_name(key: Scalar, faults: Faults, *, local: bool) -> None:
    if not NAME.fullmatch(key.text):
        faults.add(key.place.fault(f"{key.shown} is no name for a host", "Put its address under `address`."))
    elif key.text == LOCAL and not local:
        faults.add(key.place.fault("the name local stands for this machine", "Add `reach: local`, or rename it."))


def _entries(
    host: str, wanted: Containers | tuple[NamedContainer, ...], base: Mapping[str, Any]
) -> Containers | tuple[ContainerEntry, ...]:
    if isinstance(wanted, Containers):
        return wanted
    return tuple(_entry(host, container, base) for container in wanted)


def _entry(host: str, container: NamedContainer, base: Mapping[str, Any]) -> ContainerEntry:
    """A container; its own connection takes the fleet's defaults, not its host's settings."""
    if container.ssh is None:
        return ContainerEntry(name=container.name)
    shared = {setting: value for setting, value in base.items() if setting in CONNECTION}
    place = container.place.cited
    settings: dict[str, Any] = {"address": "", **shared, **container.ssh}
    return ContainerEntry(name=container.name, ssh=Host(name=f"{host}/{container.name}", place=place, **settings))
