"""One playbook file as it is written, before what it extends is put under it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.limit import Limit
from gapline.orchestrator.playbook.playbook import Level
from gapline.orchestrator.yaml_document.faults import Faults
from gapline.orchestrator.yaml_document.node import Items, Node, Place, Scalar, Table
from gapline.orchestrator.yaml_document.read import Section, choice, flag, listed, text, versioned

_KEYS = ("version", "name", "about", "extends", "runs", "fail_on", "agents")
_AGENT_KEYS = ("level", "enabled", "limits")
_LIMIT_KEYS = ("value", "origin")
NEVER = "none"
_UNREAD = Level.FULL  # stands for a level that was refused, so that nobody reports it as missing as well


@dataclass(frozen=True, slots=True)
class PlacedLimit:
    """A limit and where it is set."""

    place: Place
    limit: Limit


@dataclass(frozen=True, slots=True)
class AgentPart:
    """What one file says about an agent; None is left to the file it extends."""

    place: Place
    level: Level | None
    enabled: bool | None
    limits: Mapping[str, PlacedLimit]


@dataclass(frozen=True, slots=True)
class Extends:
    """The name or path of the playbook below, and where it is named."""

    place: Place
    wanted: str


@dataclass(frozen=True, slots=True)
class FailOn:
    """From which severity on a run fails; None: never."""

    severity: Severity | None


@dataclass(frozen=True, slots=True)
class Chapter:
    """One file; None is left to the file it extends."""

    name: str
    about: str
    extends: Extends | None
    runs: tuple[Level, ...] | None
    fail_on: FailOn | None
    agents: Mapping[str, AgentPart]


def read_chapter(root: Table, faults: Faults) -> Chapter:
    """The chapter of a document. What is wrong goes to `faults`.

    Raises:
        ConfigError: the file is of another version.
    """
    section = versioned(root, "the playbook", _KEYS, faults)
    agents = section.section("agents", "agents")
    return Chapter(
        name=section.get("name", text) or root.place.path.stem,
        about=section.get("about", text) or "",
        extends=section.get("extends", lambda node: Extends(node.place, text(node))),
        runs=section.get("runs", _levels),
        fail_on=section.get("fail_on", _fail_on),
        agents={key.text: _agent(key, node, faults) for key, node in agents.entries()} if agents else {},
    )


def _levels(node: Node) -> tuple[Level, ...]:
    levels = listed(choice(Level))(node)
    if not levels:
        raise node.place.fault("expected at least one level", f"Levels: {', '.join(Level)}.")
    return levels


def _fail_on(node: Node) -> FailOn:
    if isinstance(node, Scalar) and node.text == NEVER:
        return FailOn(None)
    try:
        return FailOn(choice(Severity)(node))
    except ConfigError as error:
        words = ", ".join((NEVER, *Severity))
        raise node.place.fault(f"expected one of {words}, got {node.shown}", error.hint) from error


def _agent(key: Scalar, node: Node, faults: Faults) -> AgentPart:
    section = Section(node, f"agent {key.text}", faults, _AGENT_KEYS)
    limits = section.section("limits", "limits")
    read = {name.text: _limit(value, faults) for name, value in limits.entries()} if limits else {}
    return AgentPart(
        place=key.place,
        level=section.get("level", choice(Level)) or (_UNREAD if "level" in section else None),
        enabled=section.get("enabled", flag),
        limits={name: PlacedLimit(limits.place_of(name), limit) for name, limit in read.items() if limit and limits},
    )


def _limit(node: Node, faults: Faults) -> Limit | None:
    if not isinstance(node, Table):
        hint = "Write {value: …, origin: …}; the origin says where the number comes from."
        faults.add(node.place.fault(f"expected a limit with value and origin, got {node.shown}", hint))
        return None
    section = Section(node, "a limit", faults, _LIMIT_KEYS)
    value = section.need("value", _value)
    origin = section.need("origin", text, 'Say where the value comes from; "judgement" if no document gives it.')
    return None if value is None or origin is None else Limit(value=value, origin=origin)


def _value(node: Node) -> bool | int | float | str | tuple[str, ...]:
    if isinstance(node, Items):
        return listed(text)(node)
    value = node.value if isinstance(node, Scalar) else None
    if value is None or value == "":
        raise node.place.fault(f"expected a number, a word, true, false or a list of words, got {node.shown}")
    return value
