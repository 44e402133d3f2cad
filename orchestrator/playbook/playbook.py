"""A playbook as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.yaml_document.node import Place


class Level(StrEnum):
    """What an agent asks of the machine and of your time."""

    QUICK = "quick"  # reads, and answers within seconds
    FULL = "full"  # reads
    BENCH = "bench"  # puts load on the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEntry:
    """What a playbook says about one agent, with the places where it says so."""

    level: Level
    enabled: bool
    limits: Limits
    place: Place
    limit_places: Mapping[str, Place]


@dataclass(frozen=True, slots=True, kw_only=True)
class Playbook:
    """Agents with their limits, and from which severity on a run fails; `fail_on` None: never."""

    name: str
    about: str
    runs: tuple[Level, ...]
    fail_on: Severity | None
    entries: Mapping[str, AgentEntry]  # every agent it names, whether it runs it or not

    @property
    def agents(self) -> Mapping[str, AgentEntry]:
        """The agents that it runs: enabled, and of one of its levels."""
        return {id_: entry for id_, entry in self.entries.items() if entry.enabled and entry.level in self.runs}

    def limits(self, agent: str) -> Limits:
        """The limits of an agent, also of one that runs only because somebody named it; none if it is not named."""
        entry = self.entries.get(agent)
        return entry.limits if entry else Limits({})
