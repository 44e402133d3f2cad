"""The settings of a host in a fleet file: how each of them is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from gapline.orchestrator.inventory.address import HIGHEST_PORT, USER_NAME, parse_address
from gapline.orchestrator.inventory.host import Become, Containers
from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.yaml_document.faults import Faults
from gapline.orchestrator.yaml_document.node import Items, Node, Place, Scalar, Table
from gapline.orchestrator.yaml_document.read import Read, Section, choice, listed, seconds, text, whole_number, word

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
NO_JUMP: Final = "none"
LOCAL: Final = "local"  # the name of the machine we run on
LONGEST_CONNECT = 600.0  # seconds
name = word(NAME, "a name of letters, digits, dots, dashes and underscores")
_container_name = word(NAME, "a container's name or VMID")


class FileReach(StrEnum):
    """The routes that a fleet file can ask for."""

    SSH = "ssh"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class NamedContainer:
    """A container that a fleet file lists; `ssh` holds the settings of its own connection, if it has one."""

    place: Place
    name: str
    ssh: Mapping[str, Any] | None = None


def read_settings(section: Section, readers: Mapping[str, Read[Any]]) -> dict[str, Any]:
    """All settings of a section that are there and right, by their names."""
    values = ((key, section.get(key, read)) for key, read in readers.items() if key in section)
    return {key: value for key, value in values if value is not None}


def _address(node: Node) -> str:
    written = text(node)
    try:
        address = parse_address(written)
    except ValueError as error:
        raise node.place.fault(str(error)) from error
    if address.user is not None or address.port is not None:
        raise node.place.fault(
            f"expected a host name or IP address, got {node.shown}", "User and port have settings of their own."
        )
    return address.host


def _jump(node: Node) -> str:
    """A chain as for `ssh -J`, each hop checked."""
    written = text(node)
    if written == NO_JUMP:
        return NO_JUMP
    try:
        return ",".join(str(parse_address(hop.strip())) for hop in written.split(","))
    except ValueError as error:
        raise node.place.fault(f"jump: {error}", "As for `ssh -J`: user@host:port, several with commas.") from error


def _become(node: Node) -> Become:
    if isinstance(node, Scalar) and isinstance(node.value, bool):
        return Become.SUDO if node.value else Become.NONE
    return choice(Become)(node)


def _path(node: Node) -> Path:
    """A path as written: `~` is the home directory, and relative ones start at the fleet file's folder."""
    try:
        return node.place.path.absolute().parent / Path(text(node)).expanduser()
    except RuntimeError as error:
        raise node.place.fault(f"{node.shown}: the home directory is not known") from error


def _readable(node: Node) -> Path:
    path = _path(node)
    try:
        with path.open("rb"):
            return path
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise node.place.fault(f"{path} cannot be read: {reason}", "Name a file that you can read.") from error


def _known_hosts(node: Node) -> Path:
    """It may be absent, since `gapline trust` creates it; but what is there must be readable."""
    try:
        return _readable(node)
    except ConfigError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return _path(node)
        raise


def _containers(node: Node) -> Containers | tuple[NamedContainer, ...]:
    if not isinstance(node, Items):
        return _automatic(node)
    found = listed(_container)(node)
    faults = Faults()
    seen: set[str] = set()
    for container in found:
        if container.name in seen:
            faults.add(container.place.fault(f"container {container.name} is listed twice"))
        seen.add(container.name)
    faults.stop_if_any()
    return found or Containers.NONE


def _automatic(node: Node) -> Containers:
    """The two words that may stand instead of a list."""
    try:
        return choice(Containers)(node)
    except ConfigError as error:
        number = isinstance(node, Scalar) and isinstance(node.value, int)
        hint = f"Write a list: [{node.text}]." if number and isinstance(node, Scalar) else error.hint
        raise node.place.fault(f"expected auto, none or a list of containers, got {node.shown}", hint) from error


def _container(node: Node) -> NamedContainer:
    if not isinstance(node, Table):
        return NamedContainer(node.place, _container_name(node))
    faults = Faults()
    section = Section(node, "a container", faults, ("name", "ssh"))
    own_name = section.need("name", _container_name)
    connection = section.section("ssh", "ssh", CONNECTION)
    settings = None
    if connection is not None:
        connection.need("address", text, "A container's ssh needs the address it listens on.")
        settings = read_settings(connection, CONNECTION)
    faults.stop_if_any()
    return NamedContainer(node.place, own_name or "", settings)


def _workload(node: Node) -> str:
    written = text(node)
    if "\n" in written:
        raise node.place.fault("expected one line")
    return written


CONNECTION: Mapping[str, Read[Any]] = {
    "address": _address,
    "user": word(USER_NAME, "a user name"),
    "port": whole_number(1, HIGHEST_PORT),
    "identity": listed(_readable),
    "known_hosts": _known_hosts,
    "jump": _jump,
    "become": _become,
    "connect_timeout": seconds(LONGEST_CONNECT),
}
"""How to reach a machine."""

_ROLE: Mapping[str, Read[Any]] = {
    "labels": listed(word(re.compile(r"[\w.:=/+-]{1,100}"), "a label without blanks")),
    "workload": _workload,
}

HOST: Mapping[str, Read[Any]] = {
    **CONNECTION,
    **_ROLE,
    "reach": choice(FileReach),
    "containers": _containers,
}
"""What a host may set."""

DEFAULTS: Mapping[str, Read[Any]] = {
    **{key: read for key, read in CONNECTION.items() if key != "address"},
    **_ROLE,
    "containers": _automatic,
}
"""What all hosts may share."""

SSH_ONLY = frozenset(CONNECTION) - {"become"}
"""What makes no sense for the machine we run on."""
