"""Judgements on the slots of GPUs: address space, lanes, errors on the link, and DMA that the IOMMU refused."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.log.fact import KernelLog, Kind, LogEvent
from gapline.agents.host.log.moment import moment, times
from gapline.agents.host.log.xid import VERIFY
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

_AER = "Linux, Documentation/PCI/pcieaer-howto.rst"

CODES = (
    Code(
        code="log.bar_unassigned",
        title="A GPU got no address space",
        meaning="Kernel or firmware found no room for a memory window (BAR) of the GPU, also not later on. The driver "
        "does not take the GPU into use.",
    ),
    Code(
        code="log.link_narrow",
        title="The kernel found a GPU behind fewer lanes than it has",
        meaning="At boot the kernel compares what each device can do with the narrowest link on its way. Speed is left "
        "out, because an idle GPU lowers it by itself; lanes it does not.",
    ),
    Code(
        code="log.link_uncorrected",
        title="Errors on the way to a GPU that PCI Express could not correct",
        meaning="A transaction was lost; after a fatal one the link is not reliable any more "
        f"({_AER}). Seen only where the operating system and not the firmware owns error reporting.",
    ),
    Code(
        code="log.link_corrected",
        title="Many errors on the way to a GPU that PCI Express corrected",
        meaning="Packets are sent again, which costs time; nothing is lost. Riser, slot or signal quality.",
    ),
    Code(
        code="log.dma_refused",
        title="The IOMMU refused a GPU's DMA",
        meaning="The GPU reached for memory that it has no mapping for, and the transfer did not happen. Peer-to-peer "
        "traffic and NCCL hang over it.",
    ),
)


def slot_findings(log: KernelLog, limits: Limits) -> Iterator[Finding]:
    """One finding for each device."""
    yield from (_room(subject, events) for subject, events in _devices(log, Kind.NO_ROOM))
    half = limits.number("least_share_of_lanes")
    yield from (_narrow(subject, events[-1], half) for subject, events in _devices(log, Kind.NARROW))
    yield from (_uncorrected(log, subject, events) for subject, events in _devices(log, Kind.UNCORRECTED))
    least = limits.number("corrected_link_errors")
    for subject, events in _devices(log, Kind.CORRECTED):
        if times(events) >= least:
            yield _corrected(log, subject, events, int(least))
    yield from (_refused(log, subject, events) for subject, events in _devices(log, Kind.PAGE_FAULT))


def _devices(log: KernelLog, kind: Kind) -> Iterator[tuple[str, list[LogEvent]]]:
    found: dict[str, list[LogEvent]] = {}
    for event in log.of(kind):
        found.setdefault(event.subject, []).append(event)
    return iter(found.items())


def _room(bus_id: str, events: list[LogEvent]) -> Finding:
    windows = ", ".join(sorted({event.detail for event in events}))
    return Finding(
        code="log.bar_unassigned",
        subject=bus_id,
        severity=Severity.CRITICAL,
        title=f"GPU {bus_id} got no address space for {windows}",
        observed=f"{windows}: no space",
        expected="assigned",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=tuple(event.evidence for event in events[:8]),
        remedy=_remedy(
            "Reboot into the firmware's setup: Above 4G Decoding on, MMIO High Size as large as offered. In a virtual "
            "machine: a larger 64-bit MMIO window on its host",
            "Keep the setting. If the firmware offers none, try the kernel parameter pci=realloc; a small board may "
            "have no room at all.",
            "A reboot.",
        ),
    )


def _narrow(bus_id: str, event: LogEvent, least: float) -> Finding:
    enough = event.code is not None and event.code >= least * 100
    return Finding(
        code="log.link_narrow",
        subject=bus_id,
        severity=Severity.INFO if enough else Severity.MEDIUM,
        base_severity=Severity.MEDIUM,
        severity_reason="many boards wire their slots so on purpose" if enough else "",
        title=f"GPU {bus_id} is behind fewer lanes than it has",
        observed=event.detail,
        expected="as many lanes as the GPU has",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(event.evidence,),
        settled_by="a bandwidth test from host to GPU; host.pcie tells whether the slot has more lanes to give",
        remedy=_remedy(
            "lspci -vv -s " + bus_id + " | grep -e LnkCap: -e LnkSta:   # as it is now",
            "Use a slot with all lanes, or reseat card and riser where the slot has them.",
            "The host is down meanwhile.",
        ),
    )


def _uncorrected(log: KernelLog, bus_id: str, events: list[LogEvent]) -> Finding:
    return Finding(
        code="log.link_uncorrected",
        subject=bus_id,
        severity=Severity.HIGH,
        title=f"{bus_id}, on the way to a GPU, reported errors that could not be corrected",
        observed=f"{times(events)} times, last {moment(log, events[-1])}: {events[-1].detail}",
        expected="none",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(event.evidence for event in events[:8]),
        origin=_AER,
        remedy=_reseat(),
    )


def _corrected(log: KernelLog, bus_id: str, events: list[LogEvent], least: int) -> Finding:
    return Finding(
        code="log.link_corrected",
        subject=bus_id,
        severity=Severity.LOW,
        title=f"{bus_id}, on the way to a GPU, reported many corrected errors",
        observed=f"{times(events)} at least, last {moment(log, events[-1])}: {events[-1].detail}",
        expected=f"less than {least} since boot",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(event.evidence for event in events[:4]),
        origin=_AER,
        remedy=_reseat(),
    )


def _refused(log: KernelLog, bus_id: str, events: list[LogEvent]) -> Finding:
    return Finding(
        code="log.dma_refused",
        subject=bus_id,
        severity=Severity.HIGH,
        title=f"The IOMMU refused DMA of {bus_id}",
        observed=f"{times(events)} times, last {moment(log, events[-1])}",
        expected="never",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=tuple(event.evidence for event in events[:8]),
        remedy=_remedy(
            "cat /sys/bus/pci/devices/" + bus_id + "/iommu_group/type   # DMA or DMA-FQ: addresses are translated",
            "Kernel parameter iommu=pt, which lets drivers of the host use memory without translation and keeps "
            "virtual machines possible; then reboot. If it goes on, report it with nvidia-bug-report.sh.",
            "Devices of the host are no longer kept to their own memory. A reboot.",
        ),
    )


def _reseat() -> Remedy:
    return _remedy(
        "grep . /sys/bus/pci/devices/*/aer_dev_*able 2>/dev/null | grep TOTAL   # which device counts; then power off, "
        "reseat card and riser",
        "Exchange card, riser and slot one at a time; set the slot to a lower PCIe generation until then.",
        "The host is down meanwhile.",
    )


def _remedy(now: str, lasting: str, cost: str) -> Remedy:
    return Remedy(
        now=now,
        lasting=lasting,
        undo="Set back what was set.",
        cost=cost,
        risk=Risk.R3,
        restarts="the host",
        verify_agent=VERIFY,
    )
