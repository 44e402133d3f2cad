"""Judgements on GPUs that the driver lost, or could not take into use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gapline.agents.host.log.fact import KernelLog, Kind, LogEvent
from gapline.agents.host.log.moment import age, moment, times
from gapline.agents.host.log.xid import VERIFY
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="log.gpu_gone",
        title="A GPU has fallen off the bus",
        meaning="It was there when the machine started and is not any more, or the driver or the kernel says that it "
        "no longer answers. It computes nothing.",
    ),
    Code(
        code="log.gsp_timeout",
        title="The GPU's system processor did not answer in time",
        meaning="Most of the driver runs on a processor of the GPU (GSP). When it does not answer, calls hang.",
    ),
    Code(
        code="log.module_unsuitable",
        title="The NVIDIA module does not fit the GPU",
        meaning="Blackwell needs the open module, GPUs before Turing the proprietary one, and old GPUs an older "
        "driver. The driver says so and leaves the GPU alone. Nothing is wrong with the GPU.",
    ),
    Code(
        code="log.firmware_missing",
        title="The GPU's firmware was not found",
        meaning="The open module loads firmware for the GPU's system processor from /lib/firmware/nvidia/VERSION. "
        "Without it the GPU is not taken into use.",
    ),
    Code(
        code="log.gpu_not_initialised",
        title="The driver could not initialise a GPU",
        meaning="It gave up (RmInitAdapter failed), for a reason that the lines before it tell.",
    ),
    Code(
        code="log.version_mismatch",
        title="A program came with another driver version than the kernel has",
        meaning="The user space of the driver must be of the module's version; the driver refuses any other. It is "
        "usually a container that was not updated with its host.",
    ),
)


@dataclass(frozen=True, slots=True)
class _Unsuitable:
    observed: str
    expected: str
    now: str


_MODULE = {
    Kind.NEEDS_OPEN: _Unsuitable(
        "the proprietary module is loaded, and this GPU needs the open one",
        "the open module of the same version",
        "apt install nvidia-open-kernel-dkms   # Debian's name; NVIDIA's repository: nvidia-open. Same version as now",
    ),
    Kind.NOT_FOR_OPEN: _Unsuitable(
        "the open module is loaded, and this GPU has no system processor for it",
        "the proprietary module of a version that still supports this GPU",
        "apt install nvidia-kernel-dkms   # Debian's name of the proprietary module",
    ),
    Kind.NOT_SUPPORTED: _Unsuitable(
        "this version of the driver no longer supports this GPU, or not yet",
        "the version that the message names",
        "Install the version that the message names",
    ),
}


def driver_findings(log: KernelLog, limits: Limits) -> Iterator[Finding]:
    """A GPU that could not be initialised is told with its cause, where the driver names one."""
    yield from _gone(log)
    if not any(event.code in {119, 120} for event in log.of(Kind.XID)):
        yield from _gsp(log)
    explained = log.of(*_MODULE, Kind.NO_FIRMWARE)
    for kind, told in _MODULE.items():
        yield from (_unsuitable(events, told) for events in _by_subject(log.of(kind)).values())
    yield from (_firmware(subject, events) for subject, events in _by_subject(log.of(Kind.NO_FIRMWARE)).items())
    causes = {event.subject for event in explained} | {event.subject for event in log.of(Kind.NO_ROOM)}
    for subject, events in _by_subject(log.of(Kind.NOT_INITIALISED)).items():
        if subject not in (*causes, *log.initialised) and "" not in causes:
            yield _not_initialised(log, subject, events)
    if mismatches := log.of(Kind.MISMATCH):
        yield _mismatch(log, mismatches, limits)


def _by_subject(events: tuple[LogEvent, ...]) -> dict[str, list[LogEvent]]:
    found: dict[str, list[LogEvent]] = {}
    for event in events:
        found.setdefault(event.subject, []).append(event)
    return found


def _gone(log: KernelLog) -> Iterator[Finding]:
    """Where the driver says so by Xid 79 as well, the finding on that tells more."""
    told = {event.subject for event in log.of(Kind.XID) if event.code == 79}  # noqa: PLR2004 - see the table of codes
    said = _by_subject(log.of(Kind.OFF_BUS))
    at_boot = dict(zip(log.missing, log.at_boot, strict=True))
    for bus_id in dict.fromkeys((*at_boot, *said)):
        if bus_id in told and bus_id not in at_boot:
            continue
        lines = (*_only(at_boot.get(bus_id)), *(event.evidence for event in said.get(bus_id, [])))
        observed = "found at boot, and no longer on the bus" if bus_id in at_boot else said[bus_id][0].detail
        yield _critical(
            ("log.gpu_gone", bus_id, f"GPU {bus_id or '(not named)'} has fallen off the bus"),
            (observed, "present, and answering"),
            lines[:6],
            _remedy(
                f"dmesg | grep -e {bus_id.removesuffix('.0') or 'NVRM'} -e pcieport -e AER   # why; if it was removed "
                "on purpose: echo 1 > /sys/bus/pci/rescan. Else power the host off and on",
                "Check power cables, riser and slot; exchange the GPU with a good one to tell card from slot.",
                "The host is down for the power cycle.",
            ),
        )


def _only(line: Evidence | None) -> tuple[Evidence, ...]:
    return () if line is None else (line,)


def _gsp(log: KernelLog) -> Iterator[Finding]:
    events = log.of(Kind.GSP)
    if events:
        yield Finding(
            code="log.gsp_timeout",
            subject="system processor",
            severity=Severity.HIGH,
            title="A GPU's system processor did not answer in time",
            observed=f"{times(events)} messages, first {moment(log, events[0])}",
            expected="none",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=tuple(event.evidence for event in events[:8]),
            origin="NVIDIA's catalogue of Xid 119 and 120: reset the GPU, or power the node off and on",
            remedy=_remedy(
                "nvidia-bug-report.sh, then reboot the host. Do not ask nvidia-smi in a loop: each call can hang",
                "A newer driver; if it comes back after a power cycle, report it to NVIDIA.",
                "The work on the GPU stops; the host reboots.",
            ),
        )


def _unsuitable(events: list[LogEvent], told: _Unsuitable) -> Finding:
    return _critical(
        (
            "log.module_unsuitable",
            events[0].subject or "module",
            f"The NVIDIA module does not fit GPU {events[0].subject}".rstrip(),
        ),
        (told.observed, told.expected),
        tuple(event.evidence for event in events[:4]),
        _remedy(
            f"{told.now}, then reboot",
            "Hold the package of the right flavour (apt-mark hold), so that an upgrade does not change it.",
            "All GPU work stops until the reboot is done.",
        ),
    )


def _firmware(subject: str, events: list[LogEvent]) -> Finding:
    return _critical(
        (
            "log.firmware_missing",
            subject or "firmware",
            f"The firmware of GPU {subject} was not found".replace("  ", " "),
        ),
        (events[0].detail, "loaded from /lib/firmware/nvidia"),
        tuple(event.evidence for event in events[:4]),
        _remedy(
            "ls /lib/firmware/nvidia/$(cat /sys/module/nvidia/version)   # if it is missing, install the firmware of "
            "that version (Debian: firmware-nvidia-gsp) and reload the module or reboot",
            "Keep module and firmware at one version; where the module is loaded from the initial RAM disk, "
            "update-initramfs -u -k all.",
            "All GPU work stops while the module is reloaded.",
        ),
    )


def _not_initialised(log: KernelLog, subject: str, events: list[LogEvent]) -> Finding:
    return _critical(
        ("log.gpu_not_initialised", subject, f"The driver could not initialise GPU {subject}"),
        (f"{events[0].detail}, {moment(log, events[0])}", "initialised"),
        tuple(event.evidence for event in events[:4]),
        _remedy(
            "dmesg | grep -B20 'RmInitAdapter failed'   # the lines before it; then power the host off and on",
            "Check power cables, riser and slot; try a newer driver; exchange the GPU with a good one.",
            "The host is down for the power cycle.",
        ),
    )


def _mismatch(log: KernelLog, events: tuple[LogEvent, ...], limits: Limits) -> Finding:
    ago = age(log, events[-1])
    old = ago is not None and ago > limits.number("recent_seconds")
    return Finding(
        code="log.version_mismatch",
        subject="user space",
        severity=Severity.LOW if old else Severity.HIGH,
        base_severity=Severity.HIGH,
        severity_reason="it has not happened for a day, so it may be mended" if old else "",
        title="A program came with another version of the NVIDIA driver than the kernel's",
        observed=f"{times(events)} refusals, last {moment(log, events[-1])}: {events[-1].detail}",
        expected="one version in kernel and user space",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=tuple(event.evidence for event in events[:8]),
        remedy=Remedy(
            now="cat /sys/module/nvidia/version   # and in each container: ls -l /usr/lib/*/libcuda.so.*; install the "
            "same version there. The number in the message is the process: cat /proc/PID/cgroup names its container",
            lasting="Upgrade the driver of host and containers together, and hold it in between.",
            undo="Install the version from before.",
            cost="The container's GPU work restarts.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=VERIFY,
        ),
    )


def _critical(
    name: tuple[str, str, str], seen: tuple[str, str], evidence: tuple[Evidence, ...], remedy: Remedy
) -> Finding:
    return Finding(
        code=name[0],
        subject=name[1] or "not named",
        severity=Severity.CRITICAL,
        title=name[2],
        observed=seen[0],
        expected=seen[1],
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=evidence,
        remedy=remedy,
    )


def _remedy(now: str, lasting: str, cost: str) -> Remedy:
    return Remedy(
        now=now,
        lasting=lasting,
        undo="nothing to undo",
        cost=cost,
        risk=Risk.R3,
        restarts="the host",
        verify_agent=VERIFY,
    )
