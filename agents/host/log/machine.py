"""Judgements on the machine around the GPUs: memory that ran out, hardware errors, and what hangs in the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.log.fact import KernelLog, Kind, LogEvent
from gapline.agents.host.log.moment import moment, times
from gapline.agents.host.log.xid import VERIFY
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

_RAS = "Linux, admin-guide/RAS: machine checks, corrected and uncorrected errors"
_HUNG = "Linux, admin-guide/sysctl/kernel.rst: hung_task_timeout_secs"
_LOCKUP = "Linux, admin-guide/lockup-watchdogs.rst"
_GIB_IN_KB = 1 << 20

CODES = (
    Code(
        code="log.oom_kill",
        title="A process was killed because memory ran out",
        meaning="The kernel killed it at the memory limit of the container that is named, or because the host had none "
        "left. How much it held tells an inference process from others.",
    ),
    Code(
        code="log.hardware_error",
        title="The processor or its memory reported an error",
        meaning="Machine checks and memory errors as the kernel decodes them. What was not corrected may have "
        "corrupted data or stopped programs; what was corrected is worth watching.",
    ),
    Code(
        code="log.hung_task",
        title="A task did not move for minutes",
        meaning="It waits in the kernel, for a disk, a network share or a GPU that does not answer.",
    ),
    Code(
        code="log.lockup",
        title="A CPU did not get to run anything else for a long time",
        meaning="A bug of a driver, or in a virtual machine a host that gives it no time.",
    ),
)


def machine_findings(log: KernelLog, limits: Limits) -> Iterator[Finding]:
    """One finding for each container, kind of error, and task."""
    for subject, events in _groups(log.of(Kind.OUT_OF_MEMORY), by_subject=True):
        yield _killed(log, subject, events, limits.number("large_process_gib"))
    for kind, severity in ((Kind.HARDWARE_UNCORRECTED, Severity.HIGH), (Kind.HARDWARE_CORRECTED, Severity.LOW)):
        for _, events in _groups(log.of(kind), by_subject=False):
            yield _plain(
                log,
                ("log.hardware_error", kind.value.split()[0], f"The machine reported {kind.value}s"),
                (severity, _RAS),
                events,
                _HARDWARE,
            )
    for subject, events in _groups(log.of(Kind.HUNG), by_subject=True):
        name = ("log.hung_task", subject, f"Task {subject} did not move for minutes")
        yield _plain(log, name, (Severity.MEDIUM, _HUNG), events, _STUCK)
    for _, events in _groups(log.of(Kind.LOCKUP), by_subject=False):
        name = ("log.lockup", "CPU", "A CPU was stuck")
        yield _plain(log, name, (Severity.HIGH, _LOCKUP), events, _STUCK)


def _groups(events: Sequence[LogEvent], *, by_subject: bool) -> Iterator[tuple[str, list[LogEvent]]]:
    found: dict[str, list[LogEvent]] = {}
    for event in events:
        found.setdefault(event.subject if by_subject else "", []).append(event)
    return iter(found.items())


def _killed(log: KernelLog, subject: str, events: list[LogEvent], large: float) -> Finding:
    held = [event.code / _GIB_IN_KB for event in events if event.code is not None]
    small = len(held) == len(events) and max(held) < large
    largest = f"; the largest held {max(held):.1f} GiB" if held else ""
    return Finding(
        code="log.oom_kill",
        subject=subject,
        severity=Severity.LOW if small else Severity.HIGH,
        base_severity=Severity.HIGH,
        severity_reason=f"no killed process held {large:g} GiB, which an inference process does" if small else "",
        title=f"Processes were killed because memory ran out: {subject}",
        observed=f"{_kills(events)}, last {moment(log, events[-1])}: {events[-1].detail}{largest}",
        expected="none",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=tuple(event.evidence for event in events[:8]),
        remedy=Remedy(
            now="Look at what the container may use and uses: memory.max, memory.peak and memory.events in its cgroup"
            if subject != "the host"
            else "free -h; the sum of the containers' memory limits, and the ARC of ZFS, must leave room for the host",
            lasting="Raise the limit (Proxmox VE: pct set CTID --memory MIB), or let the engine take less: pinned "
            "buffers, swap space, shared memory and page cache count.",
            undo="Set the limit back.",
            cost="Memory that others cannot use.",
            risk=Risk.R1,
            restarts="the killed process",
            verify_agent=VERIFY,
        ),
    )


def _kills(events: Sequence[LogEvent]) -> str:
    count = times(events)
    return "1 process killed" if count == 1 else f"{count} processes killed"


def _plain(
    log: KernelLog,
    name: tuple[str, str, str],
    weight: tuple[Severity, str],
    events: list[LogEvent],
    remedy: Remedy,
) -> Finding:
    return Finding(
        code=name[0],
        subject=name[1],
        severity=weight[0],
        title=name[2],
        observed=f"{times(events)} messages, last {moment(log, events[-1])}: {events[-1].detail}",
        expected="none",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(event.evidence for event in events[:8]),
        origin=weight[1],
        remedy=remedy,
    )


_HARDWARE = Remedy(
    now="ras-mc-ctl --errors   # package rasdaemon; and the BMC's log, which names the module",
    lasting="Exchange the memory module or processor that it names; update the firmware.",
    undo="nothing to undo",
    cost="The host is down meanwhile.",
    risk=Risk.R3,
    restarts="the host",
    verify_agent=VERIFY,
)
_STUCK = Remedy(
    now="ps -eo pid,stat,wchan:32,comm | awk '$2 ~ /D/'   # what waits now, and in which function of the kernel",
    lasting="Mend what it waits for: disk, network share or GPU; a newer driver or kernel where it is one of them.",
    undo="nothing to undo",
    cost="None for looking.",
    risk=Risk.R0,
    restarts="nothing",
    verify_agent=VERIFY,
)
