"""Judgements on the modes that GPUs were put into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.smi.fact import GpuState, GpuStates
from gapline.agents.host.smi.health import VERIFY
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

_SMI = "NVIDIA, manual of nvidia-smi"
_MIG = "NVIDIA, Multi-Instance GPU User Guide"

CODES = (
    Code(
        code="gpu.persistence_off",
        title="Persistence mode is off",
        meaning="The driver lets go of a GPU when its last process ends, and the next one waits seconds until it is "
        "set up again; clocks and limits that were set are forgotten. It costs no time per token.",
    ),
    Code(
        code="gpu.compute_mode",
        title="The compute mode restricts who may use a GPU",
        meaning="Prohibited refuses everybody; exclusive process admits one process at a time.",
    ),
    Code(
        code="gpu.mig_empty",
        title="MIG is on, but the GPU has no instance",
        meaning="A GPU in MIG mode computes only in instances; without one CUDA finds no device.",
    ),
    Code(
        code="gpu.mig_on",
        title="MIG is on",
        meaning="The GPU is divided into instances, between which there is no peer-to-peer traffic: tensor parallelism "
        "over them is slow or impossible.",
    ),
    Code(
        code="gpu.mode_pending",
        title="ECC or MIG will change at the next reset",
        meaning="A reboot or reset will bring another mode than the one in force: memory, speed and instances change.",
    ),
    Code(
        code="gpu.index_is_not_minor",
        title="The numbers of nvidia-smi are not those of the device nodes",
        meaning="nvidia-smi counts in the order of PCI addresses, /dev/nvidiaN in the order in which the driver found "
        "the GPUs. A configuration that takes one for the other gives a container other GPUs than meant.",
    ),
)


def mode_findings(fact: GpuStates) -> Iterator[Finding]:
    """One finding for all GPUs in the same mode."""
    gpus = [gpu for gpu in fact.gpus if not gpu.silent]
    if off := [gpu for gpu in gpus if gpu.persistence is False]:
        yield _persistence(off)
    for mode in sorted({gpu.compute_mode for gpu in gpus if gpu.compute_mode not in {None, "Default"}}, key=str):
        yield _compute_mode(str(mode), [gpu for gpu in gpus if gpu.compute_mode == mode])
    if empty := [gpu for gpu in gpus if gpu.mig and not gpu.mig_instances]:
        yield _mig_empty(empty)
    if divided := [gpu for gpu in gpus if gpu.mig and gpu.mig_instances]:
        yield _mig_on(divided)
    yield from _pending(gpus)
    if not fact.lost and (crossed := [gpu for gpu in gpus if gpu.minor is not None and gpu.minor != gpu.index]):
        yield _crossed(crossed)


def _persistence(gpus: Sequence[GpuState]) -> Finding:
    idle = [gpu for gpu in gpus if not gpu.processes]
    return Finding(
        code="gpu.persistence_off",
        subject="persistence mode",
        severity=Severity.LOW if idle else Severity.INFO,
        base_severity=Severity.LOW,
        severity_reason="" if idle else "each of these GPUs is in use, which keeps the driver up as well",
        title=f"Persistence mode is off on {_named(gpus)}",
        observed="Disabled",
        expected="Enabled, by nvidia-persistenced",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=_lines(gpus, "persistence_mode"),
        origin="NVIDIA, Driver Persistence",
        remedy=Remedy(
            now="systemctl start nvidia-persistenced   # on the host; Debian: package nvidia-persistenced",
            lasting="systemctl enable --now nvidia-persistenced. `nvidia-smi -pm 1` is the older way and is gone after "
            "a reboot.",
            undo="systemctl disable --now nvidia-persistenced",
            cost="A few watts per idle GPU.",
            risk=Risk.R1,
            restarts="nothing",
            verify_agent=VERIFY,
        ),
    )


def _compute_mode(mode: str, gpus: Sequence[GpuState]) -> Finding:
    prohibited = mode == "Prohibited"
    return Finding(
        code="gpu.compute_mode",
        subject=mode,
        severity=Severity.CRITICAL if prohibited else Severity.INFO,
        title=f"The compute mode of {_named(gpus)} is {mode}",
        observed=mode,
        expected="Default, unless it is meant",
        effect=Effect.BREAKS if prohibited else Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=_lines(gpus, "compute_mode"),
        origin=f"{_SMI}: Compute Mode",
        remedy=_set("nvidia-smi -c 0", f"nvidia-smi -c {_MODES.get(mode, mode)}", "Any process may use the GPU then"),
    )


_MODES = {"Prohibited": "2", "Exclusive_Process": "3"}


def _mig_empty(gpus: Sequence[GpuState]) -> Finding:
    return Finding(
        code="gpu.mig_empty",
        subject="MIG without instances",
        severity=Severity.HIGH,
        title=f"MIG is on, but there is no instance on {_named(gpus)}",
        observed="MIG enabled, no instances",
        expected="instances, or MIG off",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=_lines(gpus, "current_mig"),
        origin=f"{_MIG}: without GPU and compute instances no CUDA work runs",
        remedy=_mig_off(gpus),
    )


def _mig_on(gpus: Sequence[GpuState]) -> Finding:
    return Finding(
        code="gpu.mig_on",
        subject="MIG",
        severity=Severity.INFO,
        title=f"MIG is on: {sum(gpu.mig_instances for gpu in gpus)} instances on {_named(gpus)}",
        observed="MIG enabled",
        expected="MIG off where one model is spread over several GPUs",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=_lines(gpus, "current_mig"),
        origin=f"{_MIG}: no peer-to-peer between instances",
        remedy=_mig_off(gpus),
    )


def _pending(gpus: Sequence[GpuState]) -> Iterator[Finding]:
    modes = (
        ("MIG", "mig_mode", [gpu for gpu in gpus if _differ(gpu.mig, gpu.mig_pending)]),
        ("ECC", "ecc_mode", [gpu for gpu in gpus if _differ(gpu.errors.ecc, gpu.errors.ecc_pending)]),
    )
    for name, _, waiting in modes:
        if waiting:
            yield Finding(
                code="gpu.mode_pending",
                subject=name,
                severity=Severity.LOW,
                title=f"{name} will change at the next reset of {_named(waiting)}",
                observed=f"{name} in force and pending differ",
                expected="the same",
                effect=Effect.DOCUMENTED,
                confidence=Confidence.VERIFIED,
                evidence=tuple(gpu.evidence for gpu in waiting),
                origin=f"{_SMI}: {name} mode, pending",
                remedy=_set(
                    f"nvidia-smi -q | grep -A3 '{name} Mode'   # then reset at a time of your choice, or set it back "
                    f"with nvidia-smi {'-mig' if name == 'MIG' else '-e'}",
                    "Set the other value again.",
                    "A reset stops the work on the GPU",
                ),
            )


def _differ(current: bool | None, pending: bool | None) -> bool:  # noqa: FBT001
    return current is not None and pending is not None and current is not pending


def _crossed(gpus: Sequence[GpuState]) -> Finding:
    pairs = ", ".join(f"{gpu.index} is /dev/nvidia{gpu.minor}" for gpu in gpus[:16])
    return Finding(
        code="gpu.index_is_not_minor",
        subject="device numbers",
        severity=Severity.INFO,
        title="nvidia-smi counts the GPUs otherwise than /dev does",
        observed=pairs,
        expected="chosen by minor number or UUID, never by the index of nvidia-smi",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=_lines(gpus, "minor_number"),
        origin=f"{_SMI}: Minor Number; CUDA itself orders by speed unless CUDA_DEVICE_ORDER=PCI_BUS_ID",
        remedy=Remedy(
            now="grep -H 'Device Minor' /proc/driver/nvidia/gpus/*/information",
            lasting="Name the nodes in the container's configuration by minor number, and GPUs in CUDA_VISIBLE_DEVICES "
            "by UUID.",
            undo="nothing to undo",
            cost="None.",
            risk=Risk.R0,
            restarts="nothing",
            verify_agent=VERIFY,
        ),
    )


def _mig_off(gpus: Sequence[GpuState]) -> Remedy:
    ids = ",".join(gpu.uuid or gpu.bus_id for gpu in gpus)
    return _set(
        f"nvidia-smi mig -lgi   # what there is; to switch it off, with nothing on the GPU: nvidia-smi -i {ids} -mig 0",
        f"nvidia-smi -i {ids} -mig 1, and create the instances again",
        "The work on the GPU stops",
    )


def _set(now: str, undo: str, cost: str) -> Remedy:
    return Remedy(
        now=now,
        lasting="Find what sets it at boot: grep -rs nvidia-smi /etc/systemd/system /etc/rc.local /etc/cron*",
        undo=undo,
        cost=f"{cost}.",
        risk=Risk.R2,
        restarts="the containers that use the GPU",
        verify_agent=VERIFY,
    )


def _named(gpus: Sequence[GpuState]) -> str:
    return f"GPU {gpus[0].bus_id}" if len(gpus) == 1 else f"{len(gpus)} GPUs"


def _lines(gpus: Sequence[GpuState], name: str) -> tuple[Evidence, ...]:
    return tuple(line for gpu in gpus for line in gpu.modes if f"<{name}>" in line.text)
