"""One target: what was asked, what the answers were, what the facts are, when it happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.model.run import OutcomeEntry, ReportedFinding, Run, TargetEntry
from gapline.reports.prose import Piece, prose
from gapline.reports.svg.timeline import Axis, Strip, strips
from gapline.reports.view.allowance import Allowance, size
from gapline.reports.view.anchor import Anchors
from gapline.reports.view.fact import FactView, fact_view
from gapline.reports.view.finding import SHOWN_PER_TARGET
from gapline.reports.view.words import KINDS, LAYERS, PROBLEMS, STATUSES, tone
from gapline.reports.visible import clipped

_WIDTH = 400
_VALUE_MARKUP = 40  # bytes around each value of a fact


@dataclass(frozen=True, slots=True)
class ProblemView:
    """One thing that could not be seen."""

    label: str
    detail: str
    hint: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A way to a finding."""

    anchor: str | None  # None: the finding is in `run.json` only
    code: str
    severity: str
    waived: bool


@dataclass(frozen=True, slots=True)
class OutcomeView:
    """One agent's answer."""

    agent: str
    title: str
    layer: str
    tone: str
    label: str
    reason: str
    problems: tuple[ProblemView, ...]
    findings: tuple[Link, ...]
    age: int
    snapshot: str | None


@dataclass(frozen=True, slots=True)
class FactBlock:
    """An agent's fact; None when the page had no room for it."""

    agent: str
    title: str
    fact: FactView | None


@dataclass(frozen=True, slots=True)
class TargetView:
    """The section of a target."""

    anchor: str
    id: str
    name: str
    kind: str
    reason: str
    route: str
    problem: ProblemView | None
    outcomes: tuple[OutcomeView, ...]
    facts: tuple[FactBlock, ...]
    strips: tuple[Strip, ...]  # none where one timeline shows all targets


def targets(run: Run, anchors: Anchors, along: Axis | None, allowance: Allowance) -> Iterator[TargetView]:
    """One section after the other: audited targets, and those that were to be and were not reached."""
    by_target: dict[str, list[OutcomeEntry]] = {}
    for entry in run.outcomes:
        by_target.setdefault(entry.target, []).append(entry)
    for target in run.targets:
        if target.audited or target.problem is not None:
            yield _view(run, target, by_target.get(target.id, []), anchors, along, allowance)


def _view(  # noqa: PLR0913  the section's inputs, each of them once
    run: Run, target: TargetEntry, entries: list[OutcomeEntry], anchors: Anchors, along: Axis | None, allowance: Allowance
) -> TargetView:
    entries = sorted(entries, key=lambda entry: (list(STATUSES).index(entry.status), entry.layer, entry.agent))
    return TargetView(
        anchor=anchors.of_target(target.id) or "",
        id=target.id,
        name=target.name,
        kind=KINDS[target.kind],
        reason=clipped(target.reason, _WIDTH),
        route=target.route,
        problem=None if target.problem is None else problem_view(target.problem, target.id),
        outcomes=tuple(_outcome(run, entry, anchors) for entry in entries),
        facts=tuple(_facts(entries, allowance)),
        strips=() if along is None else strips(entries, along),
    )


def problem_view(problem: Problem, target: str) -> ProblemView:
    """A problem in words; the name of the target it stands under is not repeated."""
    detail = clipped(problem.detail.removeprefix(f"{target}: "), _WIDTH)
    return ProblemView(PROBLEMS[problem.kind], detail, prose(clipped(problem.hint, _WIDTH)))


def _outcome(run: Run, entry: OutcomeEntry, anchors: Anchors) -> OutcomeView:
    problems = (*(() if entry.problem is None else (entry.problem,)), *entry.unseen)
    return OutcomeView(
        agent=entry.agent,
        title=clipped(entry.title, _WIDTH),
        layer=LAYERS[entry.layer],
        tone=tone(entry),
        label=STATUSES[entry.status],
        reason=clipped(entry.reason, _WIDTH),
        problems=tuple(problem_view(problem, entry.target) for problem in dict.fromkeys(problems)),
        findings=tuple(_link(finding, anchors) for finding in entry.findings[:SHOWN_PER_TARGET]),
        age=entry.age,
        snapshot=_snapshot(run, entry),
    )


def _snapshot(run: Run, entry: OutcomeEntry) -> str | None:
    known = entry.snapshot is not None and 0 <= entry.snapshot < len(run.run.snapshots)
    return run.run.snapshots[entry.snapshot] if known and entry.snapshot is not None else None


def _link(finding: ReportedFinding, anchors: Anchors) -> Link:
    return Link(anchors.of_finding(finding), finding.code, finding.severity, finding.waived)


def _facts(entries: list[OutcomeEntry], allowance: Allowance) -> Iterator[FactBlock]:
    for entry in sorted(entries, key=lambda entry: (entry.layer, entry.agent)):
        if entry.fact:
            view = fact_view(entry.fact)
            texts = tuple(view.texts())
            fits = allowance.take(entry.target, size(texts) + _VALUE_MARKUP * len(texts))
            yield FactBlock(entry.agent, entry.title, view if fits else None)
