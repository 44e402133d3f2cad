"""Judgements on translated addresses between GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.acs.fact import PeerLink
from gapline.agents.host.boot_loader import where
from gapline.agents.host.boot_parameters import Parameter
from gapline.agents.host.translation.fact import DmaTranslation, GpuGroup, Mode
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.problem import Problem, ProblemKind

_ORIGIN = (
    "NVIDIA, CUDA C++ Programming Guide, 'IOMMU on Linux': peer-to-peer copies over PCI Express are not supported on "
    "bare metal with the IOMMU on; NVIDIA, NIM documentation, 'PCIe Multi-GPU Systems': set it to passthrough, iommu=pt"
)
_PASSTHROUGH = frozenset({"iommu=pt", "iommu.passthrough=1"})
CODES = (
    Code(
        code="iommu.translated",
        title="An IOMMU translates the addresses that GPUs use between each other",
        meaning="Data between two GPUs then carries bus addresses that only the IOMMU in the root complex can "
        "translate. NVIDIA does not support peer-to-peer copies over PCI Express that way on bare metal: they are "
        "slower, and collectives can hang. With passthrough the IOMMU stays on for virtual machines, and the host's "
        "own devices use physical addresses.",
    ),
)


def translation_findings(fact: DmaTranslation) -> Iterator[Finding]:
    """One for all GPUs: one parameter decides for them together. A single GPU has no peer."""
    translated = fact.translated
    if not translated or len(fact.gpus) == 1:
        return
    severity, reason = _severity(fact)
    asked = _asked(fact)
    yield Finding(
        code="iommu.translated",
        subject="GPUs",
        severity=severity,
        base_severity=Severity.HIGH,
        severity_reason=reason,
        title=f"The IOMMU translates the addresses of {len(translated)} GPU(s) that have peers",
        observed=_observed(fact) + (f"; although {asked.text} is in force" if asked else ""),
        expected="identity (passthrough), or no IOMMU",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(
            *(line for gpu in translated for line in gpu.evidence),
            *((asked.evidence,) if asked else ()),
            *fact.peer_evidence[:4],
        ),
        origin=_ORIGIN,
        remedy=_remedy(fact, asked),
    )


def mode_unseen(fact: DmaTranslation) -> tuple[Problem, ...]:
    """Groups without a type, and, where it matters, GPUs of which nvidia-smi did not tell how they talk."""
    silent = [gpu.bus_id for gpu in fact.gpus if gpu.mode is None]
    detail = f"the kernel does not show the type of the IOMMU groups of {', '.join(silent)}"
    hint = "Kernels before 4.19 have no such file; see dmesg | grep -i 'default domain type'."
    typeless = (Problem(kind=ProblemKind.UNSEEN, detail=detail, hint=hint),) if silent and len(fact.gpus) > 1 else ()
    return (*typeless, *((fact.peers_unseen,) if fact.peers_unseen and fact.translated else ()))


def _severity(fact: DmaTranslation) -> tuple[Severity, str]:
    match fact.peers:
        case PeerLink.NVLINK:
            return Severity.INFO, "high → info: NVLink joins every pair, so their data does not go over PCI Express"
        case PeerLink.NONE:
            return Severity.INFO, "high → info: the driver offers no peer-to-peer over PCI Express between these GPUs"
        case PeerLink.PCIE:
            return Severity.HIGH, ""
        case None:
            return Severity.MEDIUM, "high → medium: it was not seen whether the GPUs exchange data over PCI Express"


def _asked(fact: DmaTranslation) -> Parameter | None:
    return next((one for one in fact.boot.in_force if one.text in _PASSTHROUGH), None)


def _observed(fact: DmaTranslation) -> str:
    by_mode: dict[Mode, list[GpuGroup]] = {}
    for gpu in fact.gpus:
        by_mode.setdefault(gpu.mode or Mode.OTHER, []).append(gpu)
    return "; ".join(
        f"{mode.value} ({_WORDS[mode]}): {', '.join(gpu.bus_id for gpu in gpus)}" for mode, gpus in by_mode.items()
    )


def _remedy(fact: DmaTranslation, asked: Parameter | None) -> Remedy:
    parameter = "iommu.passthrough=1" if any(unit.startswith("smmu") for unit in fact.units) else "iommu=pt"
    lasting = (
        f"{asked.text} is there and does not hold for these GPUs. It sets a default only: devices behind a port that "
        "the firmware marks as external are translated all the same, and a group's type can be changed later. See "
        "dmesg | grep -i 'default domain type', and what writes to /sys/kernel/iommu_groups/*/type."
        if asked
        else f"Add {parameter} to the kernel's command line ({where(fact.boot)}), and reboot. Not `amd_iommu=pt` nor "
        "`intel_iommu=pt`, which do not exist."
    )
    guests = " Virtual machines with passed-through devices stay isolated." if fact.passed_through else ""
    return Remedy(
        now="Nothing that is worth its risk on a running host. Where collectives hang, NCCL_P2P_DISABLE=1 in the "
        "engine's environment makes them go through host memory, which is slower.",
        lasting=lasting,
        undo=f"Take {asked.text if asked else parameter} out again, and reboot.",
        cost="Devices that the host itself drives are no longer confined to the memory that was mapped for them: a "
        f"faulty or hostile one can reach all of it.{guests} One reboot.",
        risk=Risk.R3,
        restarts="the host",
        verify_agent="host.iommu",
    )


_WORDS = {
    Mode.OFF: "no IOMMU",
    Mode.PASSED: "passthrough",
    Mode.LAZY: "translated, lazy",
    Mode.STRICT: "translated, strict",
    Mode.OTHER: "not told, or owned by a program",
}
