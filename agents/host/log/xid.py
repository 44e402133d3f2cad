"""Judgements on Xid messages: of errors that come together, the first cause, and what followed it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from gapline.agents.host.log.fact import KernelLog, Kind, LogEvent
from gapline.agents.host.log.moment import moment, times
from gapline.agents.host.log.xid_table import ORIGIN, XIDS, Action
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

VERIFY = "host.kernel_log"

CODES = (
    Code(
        code="log.xid",
        title="The NVIDIA driver reported an error of a GPU",
        meaning="Xid messages name what went wrong by a number. Errors come in groups: the first one that does not "
        "only follow another is the cause, and the rest is told with it. What NVIDIA says to do at once decides how "
        f"serious it is ({ORIGIN}).",
    ),
    Code(
        code="log.nvswitch",
        title="An NVSwitch reported a fatal error",
        meaning="Traffic over NVLink stops for the GPUs behind it (NVIDIA, Fabric Manager User Guide, SXid errors).",
    ),
)

_SEVERITY = {
    Action.IGNORE: Severity.INFO,
    Action.FOLLOW: Severity.INFO,
    Action.RESTART_APP: Severity.LOW,
    Action.CONTAIN: Severity.MEDIUM,
    Action.RESET: Severity.HIGH,
    Action.LINK: Severity.HIGH,
    Action.CHECK: Severity.HIGH,
    Action.DRAIN: Severity.CRITICAL,
    Action.POWER: Severity.CRITICAL,
}
_GSP = (119, 120)


def xid_findings(log: KernelLog, limits: Limits) -> Iterator[Finding]:
    """One finding for each GPU and cause."""
    by_gpu: dict[str, list[LogEvent]] = {}
    for event in log.of(Kind.XID):
        by_gpu.setdefault(event.subject, []).append(event)
    for bus_id, events in by_gpu.items():
        incidents = list(_incidents(events, limits.number("incident_seconds")))
        causes = sorted(incidents, key=lambda incident: _cause(incident).code or 0)
        for _, alike in groupby(causes, key=lambda incident: _cause(incident).code):
            yield _finding(log, bus_id, list(alike), limits)
    yield from _switches(log)


def _incidents(events: Sequence[LogEvent], gap: float) -> Iterator[list[LogEvent]]:
    """Errors of one GPU with no longer pause between them; without time stamps all are one."""
    incident: list[LogEvent] = []
    for event in events:
        if incident and (event.seconds or 0.0) - (incident[-1].seconds or 0.0) > gap:
            yield incident
            incident = []
        incident.append(event)
    if incident:
        yield incident


def _cause(incident: Sequence[LogEvent]) -> LogEvent:
    """The first that does not only follow; newer drivers say themselves which one does."""
    leading = (event for event in incident if _action(event) is not Action.FOLLOW and not _caused(event))
    return next(leading, incident[0])


def _caused(event: LogEvent) -> bool:
    return "caused by previous Xid" in event.detail


def _action(event: LogEvent) -> Action | None:
    """None for a code that is not in the table."""
    known = XIDS.get(event.code or 0)
    return known.action if known else None


def _finding(log: KernelLog, bus_id: str, incidents: list[list[LogEvent]], limits: Limits) -> Finding:
    cause = _cause(incidents[0])
    known = XIDS.get(cause.code or 0)
    meaning = known.meaning if known else "a code that is not in NVIDIA's list"
    together = [event for incident in incidents for event in incident]
    count = sum(event.times for event in together if event.code == cause.code)
    last = _last(together, cause)
    others = sorted({event.code for event in together if event.code and event.code != cause.code})
    severity, reason = _severity(together, count, limits)
    base = _SEVERITY[known.action] if known else Severity.MEDIUM
    return Finding(
        code="log.xid",
        subject=f"{bus_id} Xid {cause.code}",
        severity=severity,
        base_severity=base if base is not severity else None,
        severity_reason=reason,
        title=f"GPU {bus_id}: {meaning} (Xid {cause.code})",
        observed=f"Xid {cause.code} {_when(log, cause, last, count)}"
        + (f"; with it Xid {', '.join(map(str, others))}" if others else "")
        + f": {cause.detail[:160]}",
        expected="no Xid",
        effect=Effect.PLAUSIBLE if known is None else Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(event.evidence for event in together[:12]),
        origin="" if known is None else f"{ORIGIN}: {known.action}",
        settled_by="the catalogue of the driver's own version, and dcgmi diag -r 3" if known is None else "",
        remedy=_remedy(bus_id, cause, together),
    )


def _severity(together: Sequence[LogEvent], count: int, limits: Limits) -> tuple[Severity, str]:
    """That of the worst code; an error that needs a reset and comes again is critical, one of an application medium."""
    known = [(_SEVERITY[action], event) for event in together if (action := _action(event))]
    if not known:
        return Severity.MEDIUM, ""
    worst, event = min(known, key=lambda pair: pair[0].rank)
    asked = _asked(together)
    if asked is not None and asked.rank < worst.rank:
        return asked, "the driver asks for a reset or reboot (Xid 154)"
    if worst is Severity.HIGH and count >= limits.number("recurring"):
        return Severity.CRITICAL, f"it came {count} times"
    if worst is Severity.LOW and count >= limits.number("repeated_application_errors"):
        return Severity.MEDIUM, f"it came {count} times"
    return worst, "" if event.code == _cause(together).code else f"Xid {event.code} came with it"


def _asked(together: Sequence[LogEvent]) -> Severity | None:
    """What the last Xid 154 asks for, in words: None, Drain …, GPU Reset Required, Node Reboot Required."""
    last = next((event for event in reversed(together) if event.code == 154), None)  # noqa: PLR2004 - see the table
    match = re.search(r" to 0x[0-9a-f]+ \(([\w ]{1,60})\)", last.detail) if last else None
    if match is None or match[1] == "None":
        return None
    return Severity.CRITICAL if "Reboot" in match[1] else Severity.HIGH


def _last(together: Sequence[LogEvent], cause: LogEvent) -> LogEvent:
    return next(event for event in reversed(together) if event.code == cause.code)


def _when(log: KernelLog, first: LogEvent, last: LogEvent, count: int) -> str:
    if count == 1:
        return f"once, {moment(log, first)}"
    return f"{count} times, first {moment(log, first)}, last {moment(log, last)}"


def _remedy(bus_id: str, cause: LogEvent, together: Sequence[LogEvent]) -> Remedy:
    actions = {action for event in together if (action := _action(event))}
    if cause.code in _GSP:
        return _of(_SYSTEM_PROCESSOR, "The work on the GPU stops; the host reboots.", Risk.R3, "the host")
    if Action.POWER in actions:
        return _of(_POWER, "The host is down for the power cycle.", Risk.R3, "the host")
    if actions & {Action.RESET, Action.DRAIN, Action.LINK, Action.CHECK}:
        now = (
            f"Stop every process on the GPU, then: nvidia-smi --gpu-reset -i {bus_id}   # where it is refused, reboot",
            (
                "If it comes back: nvidia-bug-report.sh for the vendor, a newer driver, and dcgmi diag -r 3. Xid 48, "
                "64 and 95 are memory errors: see host.gpu_state for what is left to repair them with."
            ),
        )
        return _of(now, "The work on the GPU stops.", Risk.R2, "the containers that use the GPU")
    return _of(_APPLICATION, "None.", Risk.R1, "the application")


_SYSTEM_PROCESSOR = (
    "nvidia-bug-report.sh, then reboot the host. Do not ask nvidia-smi in a loop: each call waits 45 s for it",
    "A newer driver; nothing in an application causes it. If it comes back after a power cycle, report it to NVIDIA.",
)
_POWER = (
    "nvidia-bug-report.sh, then power the host off and on; a reboot that does not cut power may not bring the GPU back",
    (
        "Check power cables, riser, slot and temperature, and the BMC's log; exchange the GPU with a good one to "
        "tell card from slot."
    ),
)
_APPLICATION = (
    "Restart the application if it did not do so itself; the GPU is usable",
    (
        "If it repeats with one application, run that with compute-sanitizer; if it stays with one GPU whatever runs "
        "there, test that GPU: dcgmi diag -r 3"
    ),
)


def _of(what: tuple[str, str], cost: str, risk: Risk, restarts: str) -> Remedy:
    return Remedy(
        now=what[0],
        lasting=what[1],
        undo="nothing to undo",
        cost=cost,
        risk=risk,
        restarts=restarts,
        verify_agent=VERIFY,
    )


def _switches(log: KernelLog) -> Iterator[Finding]:
    by_switch: dict[str, list[LogEvent]] = {}
    for event in log.of(Kind.SWITCH):
        by_switch.setdefault(event.subject, []).append(event)
    for bus_id, events in by_switch.items():
        yield Finding(
            code="log.nvswitch",
            subject=bus_id,
            severity=Severity.HIGH,
            title=f"NVSwitch {bus_id} reported fatal errors",
            observed=f"{times(events)} fatal SXid, first {moment(log, events[0])}",
            expected="none",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=tuple(event.evidence for event in events[:12]),
            origin="NVIDIA, Fabric Manager User Guide: fatal SXid errors",
            remedy=_of(
                (
                    (
                        "Stop all GPU work, reset all GPUs together (nvidia-smi --gpu-reset), then systemctl restart "
                        "nvidia-fabricmanager"
                    ),
                    "If it comes back: nvidia-bug-report.sh for the vendor.",
                ),
                "All GPU work stops.",
                Risk.R2,
                "all containers that use GPUs",
            ),
        )
