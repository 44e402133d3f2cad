"""Judgements on GPUs that are lost, want to be reset, or have memory that fails."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.smi.fact import GpuState, GpuStates, SaidOfGpu
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

VERIFY = "host.gpu_state"
_SMI = "NVIDIA, manual of nvidia-smi"
_MEMORY = "NVIDIA, GPU Memory Error Management (row remapping, error containment, page retirement)"

CODES = (
    Code(
        code="gpu.lost",
        title="A GPU no longer answers",
        meaning="nvidia-smi gets no handle for it, or only errors instead of values, or the driver holds it and lists "
        "it nowhere. It computes nothing, and every process that used it is stuck or dead.",
    ),
    Code(
        code="gpu.recovery_needed",
        title="The driver asks for a reset or a reboot to get over an error",
        meaning="After some errors a GPU takes no new work, or should take none, until it is reset, drained and reset, "
        "or the machine is rebooted (NVIDIA, manual of nvidia-smi, 'GPU Recovery Action').",
    ),
    Code(
        code="gpu.repair_pending",
        title="A repair of GPU memory waits for a reset",
        meaning="Memory with uncorrectable errors has been assigned a replacement, which is used only from the next "
        "reset on; until then the bad memory may be used (NVIDIA, GPU Memory Error Management).",
    ),
    Code(
        code="gpu.repair_failed",
        title="GPU memory can no longer be repaired",
        meaning="There was no spare row for bad memory, or NVIDIA's threshold for errors in SRAM is passed. NVIDIA "
        "names each as a reason to have the GPU replaced.",
    ),
    Code(
        code="gpu.spare_rows_low",
        title="Some banks of GPU memory have few spare rows left",
        meaning="The next uncorrectable errors in them cannot be repaired any more. An early warning.",
    ),
    Code(
        code="gpu.rows_remapped",
        title="Rows of GPU memory have been replaced",
        meaning="Uncorrectable errors were repaired with spare rows, as intended. Worth watching whether they grow.",
    ),
    Code(
        code="gpu.inforom_corrupted",
        title="A GPU's InfoROM is corrupted",
        meaning="The board keeps its settings and its history of memory errors there. What it says of remapped rows "
        "and errors can no longer be relied on.",
    ),
    Code(
        code="gpu.ecc_uncorrected",
        title="Memory errors that ECC could not correct, since the driver was loaded",
        meaning="Each ends the process that used the memory, with Xid 48, 63, 94 or 95 in the kernel log.",
    ),
)


def health_findings(fact: GpuStates) -> Iterator[Finding]:
    """A GPU that is silent has no other findings: its values say nothing."""
    yield from (_lost(lost.bus_id, lost.said, lost.evidence) for lost in _once(fact.lost))
    yield from (_corrupted(one) for one in _once(fact.corrupted))
    for gpu in fact.gpus:
        if gpu.silent:
            yield _lost(gpu.bus_id, "errors instead of values", gpu.evidence)
        else:
            yield from _of(gpu)


def _once(said: tuple[SaidOfGpu, ...]) -> tuple[SaidOfGpu, ...]:
    """nvidia-smi can say it several times."""
    return tuple({one.bus_id: one for one in reversed(said)}.values())


def _of(gpu: GpuState) -> Iterator[Finding]:
    errors = gpu.errors
    if gpu.recovery is not None:
        yield _recovery(gpu, gpu.recovery)
    if errors.failed:
        yield _failed(gpu)
    if errors.pending:
        yield _pending(gpu)
    if errors.banks_low:
        yield _spare_rows(gpu, errors.banks_low)
    if errors.rows_uncorrected and not (errors.pending or errors.failed):
        yield _remapped(gpu, errors.rows_uncorrected)
    if errors.uncorrected:
        yield _uncorrected(gpu, errors.uncorrected)


def _lost(bus_id: str, said: str, evidence: Evidence) -> Finding:
    return Finding(
        code="gpu.lost",
        subject=bus_id,
        severity=Severity.CRITICAL,
        title=f"GPU {bus_id} no longer answers",
        observed=said,
        expected="a state and values",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(evidence,),
        remedy=Remedy(
            now=f"dmesg | grep -e Xid -e AER -e {bus_id.removesuffix('.0')}   # why. Do not ask nvidia-smi in a loop: "
            "each call can hang for minutes. Stop the GPU's processes, then power the host off and on; a reboot that "
            "does not cut power may not bring it back",
            lasting="Check power cables, riser and slot; exchange the GPU with a good one to tell card from slot. Keep "
            "nvidia-bug-report.sh's output for the vendor.",
            undo="nothing to undo",
            cost="The host is down for the power cycle.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent=VERIFY,
        ),
    )


def _corrupted(one: SaidOfGpu) -> Finding:
    return Finding(
        code="gpu.inforom_corrupted",
        subject=one.bus_id,
        severity=Severity.MEDIUM,
        title=f"The InfoROM of GPU {one.bus_id} is corrupted",
        observed=one.said,
        expected="no warning",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(one.evidence,),
        origin=f"{_SMI}: return code 14",
        remedy=Remedy(
            now=f"nvidia-smi -q -i {one.bus_id} | grep -A8 -i inforom   # what is still readable",
            lasting="Ask the vendor of the board: they write it anew, or replace the board.",
            undo="nothing to undo",
            cost="None for looking.",
            risk=Risk.R0,
            restarts="nothing",
            verify_agent=VERIFY,
        ),
    )


def _recovery(gpu: GpuState, action: str) -> Finding:
    drains = action.startswith("Drain")
    return Finding(
        code="gpu.recovery_needed",
        subject=gpu.bus_id,
        severity=Severity.HIGH if drains else Severity.CRITICAL,
        title=f"GPU {gpu.bus_id} asks for: {action}",
        observed=action,
        expected="None",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=_naming(gpu.modes, ("gpu_recovery_action", "reset_required")) or (gpu.evidence,),
        origin=f"{_SMI}: GPU Recovery Action",
        remedy=_reset(gpu, "Look up the Xid that led to it: dmesg | grep Xid"),
    )


def _failed(gpu: GpuState) -> Finding:
    return Finding(
        code="gpu.repair_failed",
        subject=gpu.bus_id,
        severity=Severity.CRITICAL,
        title=f"GPU {gpu.bus_id}: {', '.join(gpu.errors.failed)}",
        observed=", ".join(gpu.errors.failed),
        expected="No",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=gpu.errors.evidence,
        origin=_MEMORY,
        remedy=Remedy(
            now="Take the GPU out of service: leave its node out of the container's configuration.",
            lasting="Run NVIDIA's field diagnostic (or dcgmi diag -r 3) and have the GPU replaced.",
            undo="Put the node back.",
            cost="One GPU less until it is replaced.",
            risk=Risk.R2,
            restarts="the containers that use it",
            verify_agent=VERIFY,
        ),
    )


def _pending(gpu: GpuState) -> Finding:
    rows = gpu.errors.rows_uncorrected
    told = f", {rows} rows with uncorrectable errors" if rows else ""
    return Finding(
        code="gpu.repair_pending",
        subject=gpu.bus_id,
        severity=Severity.HIGH,
        title=f"GPU {gpu.bus_id}: {', '.join(gpu.errors.pending)} waits for a reset",
        observed=f"pending: {', '.join(gpu.errors.pending)}{told}",
        expected="nothing pending",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=gpu.errors.evidence,
        origin=_MEMORY,
        remedy=_reset(
            gpu, "Watch whether the count of remapped rows grows. This alone is no reason to replace the GPU"
        ),
    )


def _spare_rows(gpu: GpuState, banks: int) -> Finding:
    return Finding(
        code="gpu.spare_rows_low",
        subject=gpu.bus_id,
        severity=Severity.MEDIUM,
        title=f"GPU {gpu.bus_id}: {banks} banks of memory have few or no spare rows left",
        observed=f"{banks} banks with low or no availability",
        expected="0 banks",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=gpu.errors.evidence,
        origin=_MEMORY,
        remedy=_watch(gpu),
    )


def _remapped(gpu: GpuState, rows: int) -> Finding:
    return Finding(
        code="gpu.rows_remapped",
        subject=gpu.bus_id,
        severity=Severity.INFO,
        title=f"GPU {gpu.bus_id} has replaced {rows} rows of memory",
        observed=f"{rows} rows with uncorrectable errors remapped, none pending, none failed",
        expected="0 rows, or a number that does not grow",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=gpu.errors.evidence,
        origin=_MEMORY,
        remedy=_watch(gpu),
    )


def _uncorrected(gpu: GpuState, errors: int) -> Finding:
    return Finding(
        code="gpu.ecc_uncorrected",
        subject=gpu.bus_id,
        severity=Severity.HIGH,
        title=f"GPU {gpu.bus_id} has had {errors} uncorrectable memory errors since the driver was loaded",
        observed=f"{errors} uncorrectable errors",
        expected="0",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=gpu.errors.evidence,
        origin=_MEMORY,
        remedy=_reset(gpu, "If they come back after a reset, have the GPU replaced"),
    )


def _naming(lines: tuple[Evidence, ...], names: tuple[str, ...]) -> tuple[Evidence, ...]:
    return tuple(line for line in lines if any(f"<{name}>" in line.text for name in names))


def _reset(gpu: GpuState, more: str) -> Remedy:
    return Remedy(
        now=f"Stop every process on the GPU, then: nvidia-smi --gpu-reset -i {gpu.uuid or gpu.bus_id}   # where GPUs "
        "are linked by NVLink, all of them together; where that is refused, reboot the host",
        lasting=f"{more}.",
        undo="nothing to undo",
        cost="The work on the GPU stops.",
        risk=Risk.R2,
        restarts="the containers that use the GPU",
        verify_agent=VERIFY,
    )


def _watch(gpu: GpuState) -> Remedy:
    return Remedy(
        now=f"nvidia-smi -q -d ROW_REMAPPER -i {gpu.uuid or gpu.bus_id}",
        lasting="Run the audit on a schedule and look whether the numbers grow.",
        undo="nothing to undo",
        cost="None.",
        risk=Risk.R0,
        restarts="nothing",
        verify_agent=VERIFY,
    )
