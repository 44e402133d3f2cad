"""Judgements on BAR1, the window through which CPU and peers reach a GPU's memory."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.pci_express.fact import GpuPath, PciExpressPaths
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="pcie.bar1_unassigned",
        title="A GPU got no address space for its memory window",
        meaning="The firmware or the kernel found no room for BAR1. The driver then refuses the GPU ('BAR1 is 0M').",
    ),
    Code(
        code="pcie.bar1_small",
        title="The memory window is small",
        meaning="Peer-to-peer traffic over PCI Express goes through BAR1. A window of 256 MiB is what firmware gives "
        "without resizable BAR; how much it costs depends on how the GPUs exchange data.",
    ),
)


def window_findings(fact: PciExpressPaths, limits: Limits) -> Iterator[Finding]:
    """A small window matters only between several GPUs."""
    for gpu in fact.gpus:
        if fact.device(gpu.bus_id).gone:
            continue
        if gpu.bar1_mib == 0:
            yield _unassigned(gpu)
        elif gpu.bar1_mib <= limits.number("small_window_mib") and len(fact.gpus) > 1:
            yield _small(gpu, limits)


def _unassigned(gpu: GpuPath) -> Finding:
    return Finding(
        code="pcie.bar1_unassigned",
        subject=gpu.bus_id,
        severity=Severity.CRITICAL,
        title=f"GPU {gpu.bus_id} has no BAR1",
        observed="no address range",
        expected="an address range, usually as big as the GPU's memory or more",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(gpu.bar1,),
        remedy=_firmware(
            "If it only happens after hot-plug: echo 1 > /sys/bus/pci/rescan. Else dmesg | grep 'BAR.*failed to assign'"
        ),
    )


def _small(gpu: GpuPath, limits: Limits) -> Finding:
    return Finding(
        code="pcie.bar1_small",
        subject=gpu.bus_id,
        severity=Severity.MEDIUM,
        title=f"GPU {gpu.bus_id} has a BAR1 of {gpu.bar1_mib} MiB",
        observed=f"{gpu.bar1_mib} MiB; {_offer(gpu)}",
        expected=f"more than {limits.number('small_window_mib'):g} MiB",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(gpu.bar1,),
        settled_by="a peer-to-peer bandwidth and latency test between two GPUs, with and without resizable BAR",
        remedy=_firmware("nothing without a reboot"),
    )


def _offer(gpu: GpuPath) -> str:
    """What the card can be given decides whether firmware settings help at all."""
    if gpu.bar1_sizes_mib is None:
        return "whether the GPU offers a larger one was not seen"
    largest = max(gpu.bar1_sizes_mib, default=0)
    if largest <= gpu.bar1_mib:
        return "the GPU offers no larger one: first a newer VBIOS, or its compute mode (NVIDIA displaymodeselector)"
    return f"the GPU offers up to {largest} MiB, and the firmware or the kernel did not give it"


def _firmware(now: str) -> Remedy:
    return Remedy(
        now=now,
        lasting="In the firmware's setup: Above 4G Decoding and Resizable BAR on, MMIO High Size or Base as large as "
        "offered. In a virtual machine: a larger 64-bit MMIO window on its host.",
        undo="Set the firmware back.",
        cost="A reboot.",
        risk=Risk.R3,
        restarts="the host",
        verify_agent="host.pcie",
    )
