"""One target: what was asked, what the answers were, what the facts are, when it happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.model.run import OutcomeEntry, ReportedFinding, Run, TargetEntry
from gapline.orchestrator.model.written_fact import WrittenFact
from gapline.reports.prose import Piece, prose
from gapline.reports.svg.timeline import Axis, Strip, strips
from gapline.reports.view.allowance import Allowance
from gapline.reports.view.anchor import Anchors
from gapline.reports.view.fact import FactView, fact_view
from gapline.reports.view.words import KINDS, LAYERS, PROBLEMS, STATUSES, tone, worst
from gapline.reports.visible import clipped

_WIDTH = 240
_LINKS = 12
_SHRINKS = 4  # a fact on the page takes at least a quarter of its JSON: what is longer need not be tried


@dataclass(frozen=True, slots=True)
class ProblemView:
    """One thing that could not be seen."""

    label: str
    detail: str
    hint: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A way to a finding."""

    anchor: str
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
    more: int  # findings without a link
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
    tone: str
    outcomes: tuple[OutcomeView, ...]
    facts: tuple[FactBlock, ...]
    strips: tuple[Strip, ...]  # none where one timeline shows all targets


@dataclass(frozen=True, slots=True)
class Sections:
    """Makes the sections of one run's targets."""

    run: Run
    anchors: Anchors
    along: Axis | None  # None: one timeline elsewhere shows all targets
    allowance: Allowance

    def __iter__(self) -> Iterator[TargetView]:
        """One after the other: audited targets, and those that were to be and were not reached."""
        by_target: dict[str, list[OutcomeEntry]] = {}
        for entry in self.run.outcomes:
            by_target.setdefault(entry.target, []).append(entry)
        for target in self.run.targets:
            if target.audited or target.problem is not None:
                yield self._view(target, by_target.get(target.id, []))

    def _view(self, target: TargetEntry, entries: list[OutcomeEntry]) -> TargetView:
        entries = sorted(entries, key=lambda entry: (list(STATUSES).index(entry.status), entry.layer, entry.agent))
        return TargetView(
            anchor=self.anchors.of_target(target.id) or "",
            id=target.id,
            name=target.name,
            kind=KINDS[target.kind],
            reason=clipped(target.reason, _WIDTH),
            route=target.route,
            problem=None if target.problem is None else problem_view(target.problem, target.id),
            tone=worst(tone(entry) for entry in entries),
            outcomes=tuple(_outcome(self.run, entry, self.anchors) for entry in entries),
            facts=tuple(_facts(entries, self.allowance)),
            strips=() if self.along is None else strips(entries, self.along),
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
        more=max(len(entry.findings) - _LINKS, 0),
        findings=tuple(_link(finding, anchors) for finding in entry.findings[:_LINKS]),
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
            yield FactBlock(entry.agent, entry.title, _fitting(entry.target, entry.fact, allowance))


def _fitting(target: str, fact: WrittenFact, allowance: Allowance) -> FactView | None:
    """The fact as it is shown; None when it is too long for what the target may still take."""
    room = allowance.left(target)
    if len(fact.json) > _SHRINKS * room:
        return None
    view = fact_view(fact.read(), room)
    return view if view is not None and allowance.take(target, view.size) else None
