"""What the kernel's log of this boot says about GPUs, their slots and the machine."""

from __future__ import annotations

from enum import StrEnum

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class Kind(StrEnum):
    """What a message is about."""

    XID = "xid"
    SWITCH = "nvswitch error"
    OFF_BUS = "off the bus"
    GSP = "system processor"
    NEEDS_OPEN = "needs the open module"
    NOT_FOR_OPEN = "not for the open module"
    NOT_SUPPORTED = "not supported by this driver"
    NO_FIRMWARE = "no firmware"
    NOT_INITIALISED = "not initialised"
    MISMATCH = "version mismatch"
    NO_ROOM = "no address space"
    NARROW = "narrow link"
    CORRECTED = "corrected link error"
    UNCORRECTED = "uncorrected link error"
    PAGE_FAULT = "refused DMA"
    HARDWARE_CORRECTED = "corrected hardware error"
    HARDWARE_UNCORRECTED = "uncorrected hardware error"
    OUT_OF_MEMORY = "out of memory"
    HUNG = "hung task"
    LOCKUP = "lockup"


class LogEvent(Fact):
    """One message, or the last of several equal ones."""

    kind: Kind
    seconds: float | None  # since boot
    subject: str  # bus id, container, task: what it is about
    code: int | None  # of an Xid; kB that a killed process held; per cent of its lanes that a link has
    detail: str
    times: int
    evidence: Evidence


class KernelLog(Fact):
    """The messages by time, and how much of the log there was."""

    origin: str  # "dmesg" or "journal"
    whole: bool  # it begins with the boot
    begins_seconds: float | None
    uptime_seconds: float | None
    lines: int
    firmware_keeps_errors: int  # root bridges whose PCI Express errors the firmware keeps to itself
    events: tuple[LogEvent, ...]
    at_boot: tuple[Evidence, ...]  # NVIDIA GPUs that the kernel found at boot and that are no longer on the bus
    missing: tuple[str, ...]  # their bus ids
    initialised: tuple[str, ...]  # GPUs that the driver has in use now

    def of(self, *kinds: Kind) -> tuple[LogEvent, ...]:
        """The events of these kinds, by time."""
        return tuple(event for event in self.events if event.kind in kinds)
