"""The first thing a reader sees: how far from the ceiling, what to fix first, which layers are out of the question.

It says nothing that the run does not say. A run without a ceiling or a measured rate is told to be one, with the
commands that would give them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gapline.orchestrator.model.finding import Effect, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import Run, Verdict
from gapline.reports.prose import Piece, prose
from gapline.reports.svg.bar import Segment, bar
from gapline.reports.view.anchor import Anchors
from gapline.reports.view.fact import FactView, fact_view
from gapline.reports.view.finding import Cost, Found, cost
from gapline.reports.view.words import LAYERS, STATUSES, VERDICTS, counted, listed
from gapline.reports.visible import clipped

_WIDTH = 600
_NAMED = 3


@dataclass(frozen=True, slots=True)
class First:
    """One of the first things to do."""

    anchor: str
    severity: Severity
    title: str
    where: str  # target and subject
    also: int  # further places with the same code
    cost: Cost
    now: tuple[Piece, ...]
    restarts: str


@dataclass(frozen=True, slots=True)
class LayerView:
    """A layer of elimination."""

    number: int
    name: str
    verdict: Verdict
    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The head of the page."""

    headline: str
    tone: str  # the severity or status that colours it
    coverage: str
    distance: tuple[Piece, ...]
    ceiling: FactView | None
    waterfall: FactView | None
    first: tuple[First, ...]
    layers: tuple[LayerView, ...]
    severities: tuple[Segment, ...]
    statuses: tuple[Segment, ...]


def answer(run: Run, findings: tuple[Found, ...], anchors: Anchors) -> Answer:
    """The head of a run's page."""
    open_findings = [one for one in findings if not one.finding.waived]
    tone, headline = _headline(run, open_findings)
    return Answer(
        headline=headline,
        tone=tone,
        coverage=_coverage(run),
        distance=prose(_distance(run)),
        ceiling=None if run.ceiling is None else fact_view(run.ceiling),
        waterfall=None if run.waterfall is None else fact_view(run.waterfall),
        first=tuple(_first(run, findings, anchors)),
        layers=_layers(run),
        severities=bar(_by_severity(open_findings)),
        statuses=bar({STATUSES[status]: run.summary.statuses.get(status, 0) for status in STATUSES}),
    )


def _headline(run: Run, findings: list[Found]) -> tuple[str, str]:
    answered = sum(run.summary.statuses.get(status, 0) for status in (Status.PASSED, Status.FOUND))
    unknown = run.summary.statuses.get(Status.UNKNOWN, 0)
    worst = min((one.finding.severity for one in findings), key=lambda severity: severity.rank, default=None)
    places = _places(tuple(dict.fromkeys(one.target for one in findings if one.finding.severity is worst)))
    match worst:
        case None if not answered:
            return "unknown", "Nothing could be audited."
        case None if unknown:
            return "unknown", f"Nothing was found in what could be seen; {counted(unknown, 'question')} had no answer."
        case None:
            return "passed", "Nothing was found, and every question had an answer."
        case Severity.CRITICAL:
            return worst, f"{_critical(findings)} on {places}."
        case _:
            many = sum(one.finding.severity is worst for one in findings)
            return worst, f"Nothing critical was found; {counted(many, f'{worst} finding')} on {places}."


def _places(targets: tuple[str, ...]) -> str:
    """Their names while they fit into a headline, then their number."""
    return listed(targets) if len(targets) <= _NAMED else counted(len(targets), "target")


def _critical(findings: list[Found]) -> str:
    critical = (one.finding for one in findings if one.finding.severity is Severity.CRITICAL)
    stops = all(finding.effect is Effect.BREAKS for finding in critical)
    return "Work is blocked" if stops else "Work is blocked or data is at risk"


def _coverage(run: Run) -> str:
    summary = run.summary
    unreached = sum(target.problem is not None and not target.uptime_seconds for target in run.targets)
    audited = f"{summary.audited:,} of {counted(summary.targets, 'target')} audited"
    counts = ", ".join(f"{summary.statuses.get(status, 0):,} {label}" for status, label in STATUSES.items())
    asked = counted(sum(summary.statuses.values()), "question")
    missing = f", {counted(unreached, 'target')} with a problem on the way" if unreached else ""
    return f"{audited}{missing}. {asked} asked: {counts}."


def _distance(run: Run) -> str:
    match run.ceiling, run.waterfall:
        case None, None:
            return "How far from the ceiling is not known: this run computed no ceiling and measured no rate."
        case None, _:
            return "A rate was measured, but no ceiling was computed, so the distance is not known."
        case _, None:
            return "A ceiling was computed, but no rate was measured, so the distance is not known."
        case _:
            return "The ceiling was computed and the rate measured; both are below, with what they rest on."


def _first(run: Run, findings: tuple[Found, ...], anchors: Anchors) -> Iterable[First]:
    by_fingerprint = {one.finding.fingerprint: one for one in findings}
    said: set[str] = set()
    for fingerprint in run.summary.first:
        one = by_fingerprint.get(fingerprint)
        if one is None or one.finding.code in said:
            continue
        said.add(one.finding.code)
        finding = one.finding
        others = sum(other.finding.code == finding.code and not other.finding.waived for other in findings)
        yield First(
            anchor=anchors.of_finding(finding),
            severity=finding.severity,
            title=clipped(finding.title, _WIDTH),
            where=clipped(f"{one.target} · {finding.subject}", _WIDTH),
            also=others - 1,
            cost=cost(finding, _WIDTH),
            now=prose(clipped(finding.remedy.now, _WIDTH)),
            restarts=clipped(finding.remedy.restarts, _WIDTH),
        )


def _layers(run: Run) -> tuple[LayerView, ...]:
    """All five, always: a layer that the run does not mention was not tested."""
    by_number = {entry.layer: entry for entry in run.layers}
    views = []
    for number, name in LAYERS.items():
        entry = by_number.get(number)
        verdict = entry.verdict if entry else Verdict.NOT_TESTED
        reason = entry.reason if entry else "The run says nothing about this layer."
        views.append(LayerView(number, name, verdict, VERDICTS[verdict], clipped(reason, _WIDTH)))
    return tuple(views)


def _by_severity(findings: list[Found]) -> dict[str, int]:
    return {severity: sum(one.finding.severity is severity for one in findings) for severity in Severity}
