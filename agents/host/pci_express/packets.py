"""Judgements on packet sizes: MaxPayload along a path, and MaxReadReq."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.pci_express.fact import GpuPath, PciExpressDevice, PciExpressPaths
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="pcie.payload_mismatch",
        title="MaxPayload differs along a GPU's path",
        meaning="A port refuses packets that are bigger than its own MaxPayload as malformed, which is a fatal error "
        "of the link. A smaller value at the GPU alone is safe for its own writes, but not for what peers send to it.",
    ),
    Code(
        code="pcie.read_request",
        title="MaxReadReq is lower than it could be",
        meaning="Often quoted as a tuning knob. On RTX PRO 6000 with EPYC 128, 512 and 4096 were tried without gain "
        "(local-inference-lab/rtx6kpro), and no NVIDIA document asks for more, so it is shown for information only.",
    ),
)


def packet_findings(fact: PciExpressPaths, limits: Limits) -> Iterator[Finding]:
    """One finding per GPU whose path disagrees; one for all GPUs with the same small MaxReadReq."""
    for gpu in fact.gpus:
        yield from _mismatch(fact, gpu)
    yield from _read_requests(fact, limits)


def _mismatch(fact: PciExpressPaths, gpu: GpuPath) -> Iterator[Finding]:
    card = fact.device(gpu.bus_id)
    ports = tuple(fact.device(bus_id) for bus_id in gpu.path[:-1])
    smaller = tuple(port for port in ports if port.payload_bytes and (card.payload_bytes or 0) > port.payload_bytes)
    bigger = tuple(port for port in ports if card.payload_bytes and (port.payload_bytes or 0) > card.payload_bytes)
    if smaller:
        origin = "PCI Express Base Specification: a payload above the receiver's Max_Payload_Size is a malformed packet"
        yield _differs(card, smaller, Severity.HIGH, origin)
    elif bigger:
        yield _differs(card, bigger, Severity.MEDIUM, "")


def _differs(card: PciExpressDevice, ports: tuple[PciExpressDevice, ...], severity: Severity, origin: str) -> Finding:
    lowest = min(port.payload_bytes or 0 for port in (card, *ports))
    shown = ", ".join(f"{port.bus_id} {port.payload_bytes}" for port in ports)
    return Finding(
        code="pcie.payload_mismatch",
        subject=card.bus_id,
        severity=severity,
        title=f"MaxPayload of GPU {card.bus_id} is {card.payload_bytes} bytes, but differs above it",
        observed=f"{card.bus_id} {card.payload_bytes}, {shown} bytes",
        expected="one value along the whole path",
        effect=Effect.DOCUMENTED if origin else Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(one.control for one in (card, *ports) if one.control),
        origin=origin,
        settled_by="" if origin else "a verified peer-to-peer copy between two GPUs, watching the AER counters",
        remedy=Remedy(
            now="Look for pci=pcie_bus_* in /proc/cmdline and take it out, unless somebody knows why it is there.",
            lasting=f"Boot with pci=pcie_bus_safe, which sets every device of a path to what all can do ({lowest} or "
            "more), or set one MaxPayload in the firmware's setup.",
            undo="Remove the parameter and reboot.",
            cost="A reboot.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent="host.pcie",
        ),
    )


def _read_requests(fact: PciExpressPaths, limits: Limits) -> Iterator[Finding]:
    cards = tuple(fact.device(gpu.bus_id) for gpu in fact.gpus)
    usual = limits.number("read_request_bytes")
    for size in sorted({card.read_request_bytes for card in cards if card.read_request_bytes}):
        if size >= usual:
            continue
        same = tuple(card for card in cards if card.read_request_bytes == size)
        first = same[0].bus_id
        code = (size // 128).bit_length() - 1
        yield Finding(
            code="pcie.read_request",
            subject=f"MaxReadReq {size}",
            severity=Severity.INFO,
            title=f"MaxReadReq is {size} bytes on {len(same)} GPU(s), for information",
            observed=f"{size} bytes on {', '.join(card.bus_id for card in same)}",
            expected=f"any; up to {usual:g} bytes are worth a try where measured host-to-device copies are slow",
            effect=Effect.PLAUSIBLE,
            confidence=Confidence.VERIFIED,
            evidence=tuple(card.control for card in same if card.control),
            settled_by="a host-to-device copy benchmark, alternating 512 and 4096 on one GPU",
            remedy=Remedy(
                now=f"To try it on one GPU: setpci -s {first} CAP_EXP+8.w=5000:7000   # 4096 bytes",
                lasting="Only if the benchmark gains: a udev rule that runs setpci when the device appears. Resets of "
                "the GPU and reboots set the old value again.",
                undo=f"setpci -s {first} CAP_EXP+8.w={code:x}000:7000",
                cost="none known; measure before and after",
                risk=Risk.R1,
                restarts="nothing",
                verify_agent="host.pcie",
            ),
        )
