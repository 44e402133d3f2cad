"""Judgements on open and proprietary kernel modules against the generation of the GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.nvidia.fact import Flavour, NvidiaDriver
from gapline.agents.host.pci_gpu import PciGpu
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="nvidia.wrong_flavour",
        title="The loaded kernel module is of the flavour that cannot drive this GPU",
        meaning="NVIDIA supports Blackwell by the open kernel modules only: the proprietary ones load, but initialise "
        "no such GPU, and nvidia-smi shows no devices (NVIDIA, 'NVIDIA Transitions Fully Towards Open-Source GPU "
        "Kernel Modules', July 2024). The open ones need the system processor (GSP) that GPUs have since Turing. The "
        "generation is inferred from the PCI device id.",
    ),
)
_OTHER = {Flavour.OPEN: Flavour.PROPRIETARY, Flavour.PROPRIETARY: Flavour.OPEN}
_INSTALL = {
    Flavour.OPEN: "nvidia-open, nvidia-kernel-open-dkms, or the .run file with -M open",
    Flavour.PROPRIETARY: "cuda-drivers, nvidia-kernel-dkms, or the .run file with -M proprietary",
}


def unfit(fact: NvidiaDriver, limits: Limits) -> tuple[PciGpu, ...]:
    """The GPUs on the bus that the loaded flavour cannot drive."""
    if fact.loaded is None:
        return ()
    ranges = limits.words(_limit(fact.loaded.flavour))
    return tuple(gpu for gpu in fact.pci if _within(gpu, ranges))


def flavour_findings(fact: NvidiaDriver, strangers: Sequence[PciGpu], limits: Limits) -> Iterator[Finding]:
    """One for all GPUs: there is one module."""
    if fact.loaded is None or not strangers:
        return
    other = _OTHER[fact.loaded.flavour]
    limit = limits[_limit(fact.loaded.flavour)]
    yield Finding(
        code="nvidia.wrong_flavour",
        subject="nvidia",
        severity=Severity.CRITICAL,
        title=f"The {fact.loaded.flavour} kernel module is loaded, but {len(strangers)} GPU(s) need the {other} one",
        observed=f"{fact.loaded.flavour} {fact.loaded.version} with {', '.join(_named(gpu) for gpu in strangers)}",
        expected=f"the {other} kernel module for the device ids {limit.value}",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=(fact.loaded.evidence, *(gpu.evidence for gpu in strangers)),
        origin=limit.origin,
        remedy=Remedy(
            now=f"Install the {other} flavour of {fact.loaded.version} ({_INSTALL[other]}), stop all GPU users, then "
            "reload: modprobe -r nvidia_uvm nvidia && modprobe nvidia",
            lasting=f"Keep the {other} package and remove the {fact.loaded.flavour} one, so that upgrades bring it.",
            undo=f"Install the {fact.loaded.flavour} flavour again.",
            cost="All GPU work stops while the module is exchanged.",
            risk=Risk.R3,
            restarts="every GPU container; the host where the module cannot be removed",
            verify_agent="host.nvidia_driver",
        ),
    )


def _limit(loaded: Flavour) -> str:
    return "closed_only_devices" if loaded is Flavour.OPEN else "open_only_devices"


def _within(gpu: PciGpu, ranges: tuple[str, ...]) -> bool:
    """Whether the device id lies in one of the ranges ``2b80-2dff``."""
    bounds = (tuple(int(end, 16) for end in text.split("-")) for text in ranges)
    return any(low <= int(gpu.device, 16) <= high for low, high in bounds)


def _named(gpu: PciGpu) -> str:
    return f"{gpu.bus_id} (10de:{gpu.device[2:]})"
