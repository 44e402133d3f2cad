"""Judgements on the resource limits of a container's GPU processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.byte_size import size
from gapline.agents.container.gpu_processes import GpuProcess
from gapline.agents.container.process_limits import ProcessLimit
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.rlimits"
_MEMLOCK_ORIGIN = (
    "Linux mm/mlock.c and drivers/infiniband/core/umem.c compare with RLIMIT_MEMLOCK unless CAP_IPC_LOCK is held in "
    "the initial user name space; NVIDIA's container guides ask for an unlimited memlock"
)

CODES = (
    Code(
        code="rlimits.memlock",
        title="The inference process may lock only part of its memory",
        meaning="mlock, RDMA registration and io_uring count against RLIMIT_MEMLOCK, and fail with ENOMEM beyond it "
        "while plenty of memory is free. CUDA's own pinned memory is not counted: NVIDIA's kernel module never looks "
        "at the limit. CAP_IPC_LOCK in the initial user name space, which privileged containers have, lifts it.",
    ),
    Code(
        code="rlimits.open_files",
        title="The inference process may open few files",
        meaning="Every client connection, weight file and peer of a distributed run takes a descriptor. The soft limit "
        "of 1024 that most services start with is used up by a few hundred clients: 'Too many open files'.",
    ),
)


def little_memlock(processes: Sequence[GpuProcess], rdma: Sequence[str], enough: int) -> Iterator[Finding]:
    """One finding for the GPU process with the smallest limit, if any limit is finite."""
    limited = [(limit.soft, process, limit) for process, limit in _rows(processes, "Max locked memory")]
    finite = sorted(((soft, p, limit) for soft, p, limit in limited if soft is not None), key=lambda row: row[0])
    if not finite:
        return
    serious = [row for row in finite if not row[1].locks_freely] or finite
    soft, process, limit = serious[0]
    severity, reason = _memlock_severity(process, soft, rdma, enough)
    yield Finding(
        code="rlimits.memlock",
        subject="memlock",
        severity=severity,
        base_severity=Severity.HIGH,
        severity_reason=reason,
        title=f"{_who(process)} may lock {size(soft)} of memory",
        observed=f"soft limit {soft} bytes, hard limit {'unlimited' if limit.hard is None else f'{limit.hard} bytes'}",
        expected="unlimited",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(limit.evidence, *process.evidence),
        origin=_MEMLOCK_ORIGIN,
        remedy=Remedy(
            now="For a systemd service in the container: `systemctl edit UNIT`, LimitMEMLOCK=infinity, and restart the "
            "service. It cannot be raised beyond the hard limit from inside an unprivileged container.",
            lasting="Proxmox VE and LXC: `lxc.prlimit.memlock: unlimited` in the container's configuration (with `=` "
            "in a plain LXC file); systemd in the container passes it on. limits.conf is for logins only.",
            undo="Remove the line or the drop-in.",
            cost="A process may then lock as much memory as the container's memory limit allows.",
            risk=Risk.R2,
            restarts="the container, or the service for the drop-in",
            verify_agent=AGENT_ID,
        ),
    )


def _memlock_severity(process: GpuProcess, soft: int, rdma: Sequence[str], enough: int) -> tuple[Severity, str]:
    if process.locks_freely:
        return (
            Severity.INFO,
            f"{_who(process)} holds CAP_IPC_LOCK in the initial user name space, which lifts the limit",
        )
    if not rdma:
        return Severity.LOW, "the container has no RDMA device, and CUDA's pinned memory is not counted"
    if soft >= enough:
        return Severity.LOW, f"it is at least {size(enough)}"
    return Severity.HIGH, ""


def few_files(processes: Sequence[GpuProcess], enough: int) -> Iterator[Finding]:
    """One finding for the GPU process with the smallest soft limit below `enough`."""
    rows = [(limit.soft, process, limit) for process, limit in _rows(processes, "Max open files")]
    short = sorted(
        ((soft, p, limit) for soft, p, limit in rows if soft is not None and soft < enough), key=lambda r: r[0]
    )
    for soft, process, limit in short[:1]:
        yield Finding(
            code="rlimits.open_files",
            subject="nofile",
            severity=Severity.LOW,
            title=f"{_who(process)} may open {soft} files",
            observed=f"soft limit {soft}",
            expected=f"at least {enough}",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=(limit.evidence,),
            origin="getrlimit(2): open, accept and socket fail with EMFILE at the soft limit",
            remedy=Remedy(
                now="For a systemd service: `systemctl edit UNIT`, LimitNOFILE=65536, and restart the service.",
                lasting="Keep the drop-in; for all services, DefaultLimitNOFILE in /etc/systemd/system.conf of the "
                "container. A server may also raise its own soft limit up to the hard one.",
                undo="Remove the drop-in.",
                cost="None.",
                risk=Risk.R2,
                restarts="the inference service",
                verify_agent=AGENT_ID,
            ),
        )


def _rows(processes: Sequence[GpuProcess], name: str) -> Iterator[tuple[GpuProcess, ProcessLimit]]:
    for process in processes:
        limit = process.limit(name)
        if limit is not None:
            yield process, limit


def _who(process: GpuProcess) -> str:
    return f"{process.name or 'GPU process'} ({process.pid})"
