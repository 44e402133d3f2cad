"""Judgements on a container's /dev/shm."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.shm_reading import Shm
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

AGENT_ID = "container.shm"
_NCCL = (
    "NVIDIA NCCL User Guide, Troubleshooting, Shared memory (Docker: --shm-size=1g); vLLM documentation, Using Docker "
    "(--ipc=host or --shm-size for tensor parallel inference)"
)
_SHM = "shm_open(3): POSIX shared memory objects are files on a tmpfs mounted at /dev/shm"

CODES = (
    Code(
        code="shm.small",
        title="The shared memory file system is small",
        meaning="Processes of one engine exchange data through files in /dev/shm: NCCL between GPUs that cannot reach "
        "each other directly, vLLM and PyTorch between their workers. 64 MiB is Docker's default and holds none of "
        "that: 'Error while creating shared memory segment /dev/shm/nccl-…', or a bus error. NVIDIA advises 1 GiB.",
    ),
    Code(
        code="shm.full",
        title="The shared memory file system is nearly full",
        meaning="What is written beyond its size fails with ENOSPC, or kills the writer with SIGBUS where it is "
        "mapped. Files of processes that were killed stay there until somebody removes them.",
    ),
    Code(
        code="shm.not_in_memory",
        title="Shared memory does not lie in memory",
        meaning="It is a folder of the root file system or of another disk, so that what processes exchange through it "
        "is written back to that disk.",
    ),
    Code(
        code="shm.unusable",
        title="Shared memory cannot be created",
        meaning="The folder /dev/shm is not there or read-only: shm_open fails, and with it NCCL, the workers of "
        "PyTorch and named semaphores.",
    ),
)


def shm_findings(view: Shm, limits: Limits) -> Iterator[Finding]:
    """What is wrong with one /dev/shm; the gravest only, since the others follow from it."""
    if view.state == "absent" or view.read_only:
        yield _unusable(view)
    elif view.size_bytes is None or view.free_bytes is None:
        return
    elif not view.in_memory:
        yield _not_in_memory(view)
    elif 0 < view.size_bytes < limits.number("advised_bytes"):
        yield _small(view, view.size_bytes, limits)
    elif view.size_bytes and view.free_bytes < limits.number("least_free_bytes"):
        yield _full(view, view.size_bytes, view.free_bytes)


def _small(view: Shm, size: int, limits: Limits) -> Finding:
    tiny = size <= limits.number("tiny_bytes")
    severity, reason = _small_severity(view) if tiny else (Severity.LOW, "")
    base = Severity.HIGH if tiny else Severity.LOW
    return Finding(
        code="shm.small",
        subject="shm",
        severity=severity,
        base_severity=base,
        severity_reason=reason,
        title=f"Shared memory of {_who(view)} holds {_mib(size)}",
        observed=f"{size} bytes, {view.free_bytes} free" + ("" if view.mounted else "; no mount of its own"),
        expected=f"at least {_mib(int(limits.number('advised_bytes')))}",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=view.evidence,
        origin=_NCCL,
        remedy=_larger(view),
    )


def _small_severity(view: Shm) -> tuple[Severity, str]:
    if not view.cuda:
        return Severity.MEDIUM, "no CUDA process runs, so it is not known whether one will need more"
    if len(view.gpus) == 1:
        return Severity.LOW, "its processes use one GPU, so nothing is exchanged between GPUs"
    return Severity.HIGH, ""


def _full(view: Shm, size: int, free: int) -> Finding:
    return Finding(
        code="shm.full",
        subject="shm",
        severity=Severity.MEDIUM,
        title=f"Shared memory of {_who(view)} has {_mib(free)} of {_mib(size)} left",
        observed=f"{free} bytes free of {size}",
        expected="room for the segments of the next start",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=view.evidence,
        origin="tmpfs(5) and mmap(2): ENOSPC on writing, SIGBUS in a mapping that the file system cannot back",
        remedy=_larger(view).model_copy(
            update={
                "now": "In the container, `ls -l /dev/shm` and `fuser -v /dev/shm/*`: remove only files that no "
                "process has open (left by processes that were killed). " + _larger(view).now
            }
        ),
    )


def _not_in_memory(view: Shm) -> Finding:
    return Finding(
        code="shm.not_in_memory",
        subject="shm",
        severity=Severity.MEDIUM,
        title=f"Shared memory of {_who(view)} is not in memory",
        observed="a mount of another kind than tmpfs" if view.mounted else "a folder of the file system above it",
        expected="a tmpfs",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=view.evidence,
        origin=_SHM,
        remedy=_larger(view),
    )


def _unusable(view: Shm) -> Finding:
    return Finding(
        code="shm.unusable",
        subject="shm",
        severity=Severity.HIGH,
        title=f"Shared memory of {_who(view)} is " + ("read-only" if view.read_only else "not there"),
        observed="mounted read-only" if view.read_only else "no folder /dev/shm",
        expected="a writable tmpfs",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=view.evidence,
        origin=_SHM,
        remedy=_larger(view),
    )


def _larger(view: Shm) -> Remedy:
    live = (
        "mount -o remount,rw,size=16G /dev/shm" if view.mounted else "mount -t tmpfs -o size=16G,mode=1777 shm /dev/shm"
    )
    if view.state == "absent":
        live = f"mkdir /dev/shm && {live}"
    return Remedy(
        now=f"As root in the container: `{live}`; stop the engine before mounting anew. Where the engine runs in "
        "a Docker container, start that one with `--shm-size=16g` or `--ipc=host` instead.",
        lasting="In /etc/fstab of the container: `tmpfs /dev/shm tmpfs rw,nosuid,nodev,size=16G 0 0`; without an init "
        "that reads it, `lxc.mount.entry: tmpfs dev/shm tmpfs rw,nosuid,nodev,size=16G,create=dir 0 0` in the "
        "container's configuration (with `=` in a plain LXC file). Docker: `shm_size: 16gb` in the Compose file, or "
        '"default-shm-size" in /etc/docker/daemon.json.',
        undo="Remove the line and restart the container.",
        cost="Memory only for what is stored there; it counts against the container's memory limit.",
        risk=Risk.R2,
        restarts="the inference service",
        verify_agent=AGENT_ID,
    )


def _who(view: Shm) -> str:
    return view.users[0] + (f" and {len(view.users) - 1} more" if len(view.users) > 1 else "")


def _mib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.1f} MiB"
