"""Which tuning services run, and what they are told to set."""

from __future__ import annotations

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class Service(Fact):
    """A unit that systemd knows. `active` holds also for a oneshot that has done its work and remains."""

    name: str  # "tuned", without ".service"
    active: bool
    enabled: bool
    evidence: Evidence


class Wish(Fact):
    """One setting of a service's configuration."""

    service: str  # "tuned"
    name: str  # as in the file: "governor", "CPU_SCALING_GOVERNOR_ON_AC", "profile"
    values: tuple[str, ...]  # the first that works is taken; mostly one
    evidence: Evidence


class Tuning(Fact):
    """Services that are installed, and the wishes of those whose configuration is known."""

    services: tuple[Service, ...]
    wishes: tuple[Wish, ...]

    def running(self, *names: str) -> tuple[Service, ...]:
        """Those of that name that are active."""
        return tuple(one for one in self.services if one.active and one.name in names)
