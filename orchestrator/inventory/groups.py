"""The groups of a fleet file: names for hosts and for other groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.inventory.settings import LOCAL, NAME, name
from gapline.orchestrator.yaml_document.faults import Faults
from gapline.orchestrator.yaml_document.node import Node, Scalar
from gapline.orchestrator.yaml_document.read import Read, Section, listed


def read_groups(section: Section, hosts: Mapping[str, Host], faults: Faults) -> dict[str, tuple[str, ...]]:
    """The members of each group as written. Unknown members and circles are faults."""
    keys = [key for key, _ in section.entries()]
    read = listed(_member({*hosts, *(key.text for key in keys)}))
    groups: dict[str, tuple[str, ...]] = {}
    for key in keys:
        _check_name(key, hosts, faults)
        groups[key.text] = section.get(key.text, read) or ()
    _refuse_circle(groups, section, faults)
    return groups


def _member(known: Collection[str]) -> Read[str]:
    def read(node: Node) -> str:
        found = name(node)
        if isinstance(node, Scalar) and found not in known:
            unknown = Faults()
            unknown.unknown("host or group", node, known)
            raise unknown.error()
        return found

    return read


def _check_name(key: Scalar, hosts: Mapping[str, Host], faults: Faults) -> None:
    if key.text in hosts:
        faults.add(key.place.fault(f"{key.text} is a host already, see {hosts[key.text].place}", "Rename the group."))
    elif key.text == LOCAL or not NAME.fullmatch(key.text):
        faults.add(key.place.fault(f"{key.shown} is no name for a group"))


def _refuse_circle(groups: Mapping[str, Sequence[str]], section: Section, faults: Faults) -> None:
    try:
        TopologicalSorter(groups).prepare()
    except CycleError as error:
        circle = [str(group) for group in reversed(error.args[1])]
        place = section.place_of(circle[0])
        faults.add(place.fault(f"group {circle[0]} contains itself: {' → '.join(circle)}"))
