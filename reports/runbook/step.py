"""One thing to do: a remedy, and the findings that it repairs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gapline.orchestrator.model.finding import Remedy, Risk, Severity
from gapline.orchestrator.model.run import ReportedFinding


class Part(StrEnum):
    """When it is done; in this order."""

    LIVE = "live"  # while everything runs
    RESTART = "restart"  # before one restart of the container
    REBOOT = "reboot"  # before the one reboot of the host
    TRADE = "trade"  # gives up security: decided apart


_PARTS = {Risk.R0: Part.LIVE, Risk.R1: Part.LIVE, Risk.R2: Part.RESTART, Risk.R3: Part.REBOOT, Risk.R4: Part.TRADE}


@dataclass(frozen=True, slots=True)
class Step:
    """What one agent says about one cause on one target. `subjects` are all that it was found on."""

    target: str
    agent: str
    findings: tuple[ReportedFinding, ...]  # at least one, the worst first, all with the same remedy

    @property
    def remedy(self) -> Remedy:
        """What to do."""
        return self.findings[0].remedy

    @property
    def part(self) -> Part:
        """When to do it."""
        return _PARTS[self.remedy.risk]

    @property
    def severity(self) -> Severity:
        """Of the worst finding."""
        return self.findings[0].severity

    @property
    def order(self) -> tuple[int, str, str, str]:
        """The worst first; ties by what and where."""
        first = self.findings[0]
        return self.severity.rank, first.code, self.target, first.subject
