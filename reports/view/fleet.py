"""All targets on one screen, and the findings that several of them share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import Run, TargetEntry
from gapline.reports.view.anchor import Anchors
from gapline.reports.view.finding import Found
from gapline.reports.view.words import KINDS
from gapline.reports.visible import clipped

_WIDTH = 300
_PLACES = 12


@dataclass(frozen=True, slots=True)
class Overview:
    """A target's line."""

    id: str
    name: str
    parent: str | None
    kind: str
    anchor: str | None  # None: it has no section
    state: str  # worst severity, else "unknown", "passed", "unreached" or "listed"
    severities: tuple[tuple[Severity, int], ...]
    waived: int
    unknown: int
    passed: int
    reason: str  # why it is not audited, or what was in the way
    privilege: str
    route: str
    load: str
    uptime: str
    skew: str
    connections: int
    sessions: int
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a shared finding occurs."""

    target: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Shared:
    """One code on several targets."""

    code: str
    title: str
    severity: Severity
    targets: int
    findings: int
    places: tuple[Place, ...]
    more: int


def overview(run: Run, anchors: Anchors) -> tuple[Overview, ...]:
    """Every target, in the run's order."""
    statuses: dict[str, Counter[Status]] = {}
    severities: dict[str, Counter[Severity]] = {}
    waived: Counter[str] = Counter()
    for entry in run.outcomes:
        statuses.setdefault(entry.target, Counter())[entry.status] += 1
        for finding in entry.findings:
            waived[entry.target] += finding.waived
            severities.setdefault(entry.target, Counter())[finding.severity] += not finding.waived
    return tuple(
        _line(target, anchors, statuses.get(target.id, Counter()), severities.get(target.id, Counter()), waived)
        for target in run.targets
    )


def shared(findings: tuple[Found, ...], anchors: Anchors) -> tuple[Shared, ...]:
    """Codes found on more than one target, in the order in which findings are read."""
    groups: dict[str, list[Found]] = {}
    for one in findings:
        if not one.finding.waived:
            groups.setdefault(one.finding.code, []).append(one)
    views = (_shared(code, group, anchors) for code, group in groups.items())
    return tuple(view for view in views if view.targets > 1)


def _shared(code: str, group: list[Found], anchors: Anchors) -> Shared:
    first_on: dict[str, Found] = {}
    for one in group:
        first_on.setdefault(one.target, one)
    places = [Place(target, anchors.of_finding(one.finding)) for target, one in first_on.items()]
    worst = min(group, key=lambda one: one.finding.severity.rank).finding
    return Shared(
        code=code,
        title=clipped(worst.title, _WIDTH),
        severity=worst.severity,
        targets=len(places),
        findings=len(group),
        places=tuple(places[:_PLACES]),
        more=max(len(places) - _PLACES, 0),
    )


def _line(
    target: TargetEntry,
    anchors: Anchors,
    statuses: Counter[Status],
    severities: Counter[Severity],
    waived: Counter[str],
) -> Overview:
    counts = tuple((severity, severities[severity]) for severity in Severity if severities[severity])
    told = target.problem.detail if target.problem is not None else target.reason
    return Overview(
        id=target.id,
        name=target.name,
        parent=target.parent,
        kind=KINDS[target.kind],
        anchor=anchors.of_target(target.id) if target.audited or target.problem is not None else None,
        state=_state(target, counts, statuses),
        severities=counts,
        waived=waived[target.id],
        unknown=statuses[Status.UNKNOWN],
        passed=statuses[Status.PASSED],
        reason=clipped(told, _WIDTH),
        privilege=target.privilege or "unknown",
        route=target.route,
        load="unknown" if target.load is None else " ".join(f"{value:.2f}" for value in target.load),
        uptime=_uptime(target.uptime_seconds),
        skew=_skew(target.clock_skew_seconds),
        connections=target.connections,
        sessions=target.sessions,
        labels=target.labels,
    )


def _state(target: TargetEntry, counts: tuple[tuple[Severity, int], ...], statuses: Counter[Status]) -> str:
    if counts:
        return counts[0][0]
    if not target.audited:
        return "listed" if target.problem is None else "unreached"
    if statuses[Status.UNKNOWN] or not statuses[Status.PASSED]:
        return "unknown"
    return "passed"


def _uptime(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    days, rest = divmod(int(seconds), 86_400)
    hours, rest = divmod(rest, 3_600)
    return f"{days} d {hours} h" if days else f"{hours} h {rest // 60} min"


def _skew(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:+.2f} s"
