"""A host's kernel: version, condition, command line, and the states that parameters ask for."""

from __future__ import annotations

from gapline.agents.host.boot_parameters import BootParameters
from gapline.agents.host.cpu.fact import Processor, Setting
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class Kernel(Fact):
    """What runs, and what it was asked to do."""

    release: str  # "6.14.11-4-pve"
    evidence: Evidence
    processor: Processor
    boot: BootParameters
    states: dict[str, Setting]  # by path: what parameters ask for and the kernel shows
    taint: int | None  # the bits of kernel.tainted; None where there is no such file
    mitigations: dict[str, str]  # "spectre_v2": "Mitigation: …"; for information only

    def state(self, path: str) -> str:
        """The value below a path; empty where it is not there."""
        return self.states[path].value if path in self.states else ""
