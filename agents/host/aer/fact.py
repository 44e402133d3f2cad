"""Errors that GPUs and the ports above them have counted since the host was booted."""

from __future__ import annotations

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class ErrorCounters(Fact):
    """One device with Advanced Error Reporting. The names of errors are the kernel's."""

    bus_id: str
    root_port: bool
    correctable: dict[str, int]  # without those that are zero, and without the total
    nonfatal: dict[str, int]
    fatal: dict[str, int]
    handled: bool | None  # of a root port: Linux receives its errors; None of other devices
    evidence: tuple[Evidence, ...]  # the device's own line, then one for each counter


class PciErrors(Fact):
    """All devices on the paths to the GPUs that this host drives."""

    gpus: tuple[str, ...]
    counters: tuple[ErrorCounters, ...]
    up_hours: float
