"""From judged targets to a finished run: entries, layers, order of repair, exit code. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gapline.orchestrator.judged import Judged
from gapline.orchestrator.layers import layer_entries
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Severity, fingerprint
from gapline.orchestrator.model.outcome import Found, NotApplicable, Outcome, Passed, Status, Unknown, status
from gapline.orchestrator.model.outcome import judged as as_outcome
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import Header, OutcomeEntry, ReportedFinding, Run, Summary, TargetEntry
from gapline.orchestrator.model.written_fact import WrittenFact

FIRST = 5  # how many findings the answer names: as many as a person takes in at once
_LEFT_ALONE = frozenset({ProblemKind.NOT_RUNNING, ProblemKind.WITHHELD})
"""Unknown because its operator stopped it or because we were not allowed to look: no failure of the audit."""


def settled(judged: Sequence[Judged]) -> tuple[Judged, ...]:
    """One target's outcomes without the findings that yield to another agent which answered the same question."""
    answered = {one.agent.id for one in judged if isinstance(one.outcome, Passed | Found)}
    return tuple(_yielding(one, answered) for one in judged)


def _yielding(judged: Judged, answered: set[str]) -> Judged:
    outcome = judged.outcome
    yielding = {code.code for code in judged.agent.codes if code.yields_to in answered}
    if not isinstance(outcome, Found) or not yielding:
        return judged
    kept = tuple(finding for finding in outcome.findings if finding.code not in yielding)
    return replace(judged, outcome=as_outcome(outcome.fact, kept, outcome.unseen))


def outcome_entry(judged: Judged, snapshot: int | None) -> OutcomeEntry:
    """One outcome as it is written."""
    outcome = judged.outcome
    fact = outcome.fact
    return OutcomeEntry(
        target=judged.target,
        agent=judged.agent.id,
        title=judged.agent.title,
        layer=judged.agent.layer,
        status=status(outcome),
        reason=_reason(outcome),
        problem=outcome.problem if isinstance(outcome, Unknown) else None,
        unseen=outcome.unseen if isinstance(outcome, Found | Unknown) else (),
        times=judged.times,
        snapshot=snapshot,
        age=0,
        fact=WrittenFact.of(fact) if fact is not None else None,
        findings=_reported(judged.target, outcome),
    )


def merge(header: Header, targets: Sequence[TargetEntry], outcomes: Sequence[OutcomeEntry]) -> Run:
    """The run document. Findings stand worst first within each outcome, outcomes as given."""
    return Run(
        run=header,
        targets=tuple(targets),
        outcomes=tuple(outcomes),
        layers=layer_entries(targets, outcomes),
        summary=summarise(header.fail_on, targets, outcomes),
    )


def summarise(fail_on: str, targets: Sequence[TargetEntry], outcomes: Sequence[OutcomeEntry]) -> Summary:
    """Counts, what to do first, and the exit code."""
    findings = [finding for outcome in outcomes for finding in outcome.findings if not finding.waived]
    severities = Counter(finding.severity.value for finding in findings)
    statuses = Counter(outcome.status.value for outcome in outcomes)
    return Summary(
        targets=len(targets),
        audited=sum(target.audited for target in targets),
        findings={severity.value: severities[severity.value] for severity in Severity},
        statuses={one.value: statuses[one.value] for one in Status},
        first=_first(findings),
        exit_code=exit_code(fail_on, targets, outcomes),
    )


def exit_code(fail_on: str, targets: Sequence[TargetEntry], outcomes: Sequence[OutcomeEntry]) -> int:
    """4 a bug of ours · 1 a finding at or above `fail_on` · 3 something could not be audited · 0 clean.

    A run in which nothing was seen is never 0.
    """
    problems = [*(target.problem for target in targets), *(outcome.problem for outcome in outcomes)]
    if any(problem is not None and problem.kind is ProblemKind.DEFECT for problem in problems):
        return 4
    if fail_on != "none":
        limit = Severity(fail_on).rank
        if any(f.severity.rank <= limit and not f.waived for outcome in outcomes for f in outcome.findings):
            return 1
    seen = any(outcome.status in (Status.PASSED, Status.FOUND) for outcome in outcomes)
    incomplete = any(target.problem is not None for target in targets) or any(map(_failed, outcomes))
    return 3 if incomplete or not seen else 0


def in_order(findings: Iterable[ReportedFinding]) -> list[ReportedFinding]:
    """The order in which to fix: worst first, then what is best backed; ties by code and fingerprint."""
    effects, confidences = list(Effect), list(Confidence)
    return sorted(
        findings,
        key=lambda finding: (
            finding.severity.rank,
            effects.index(finding.effect),
            confidences.index(finding.confidence),
            finding.code,
            finding.fingerprint,
        ),
    )


def _first(findings: Sequence[ReportedFinding]) -> tuple[str, ...]:
    """One fingerprint for each fault, however many targets have it."""
    by_fault: dict[tuple[str, str], str] = {}
    for finding in in_order(findings):
        if _worth_naming(finding):
            by_fault.setdefault((finding.code, finding.title), finding.fingerprint)
    return tuple(by_fault.values())[:FIRST]


def _worth_naming(finding: Finding) -> bool:
    return finding.severity.rank <= Severity.MEDIUM.rank


def _failed(outcome: OutcomeEntry) -> bool:
    """Whether it, or a part of it, could not be seen."""
    problems = (outcome.problem, *outcome.unseen)
    return any(problem is not None and problem.kind not in _LEFT_ALONE for problem in problems)


def _reported(target: str, outcome: Outcome) -> tuple[ReportedFinding, ...]:
    if not isinstance(outcome, Found):
        return ()
    reported = (
        ReportedFinding(
            **{name: getattr(finding, name) for name in Finding.model_fields},
            fingerprint=fingerprint(target, finding.code, finding.subject),
        )
        for finding in outcome.findings
    )
    return tuple(in_order(reported))


def _reason(outcome: Outcome) -> str:
    match outcome:
        case Passed():
            return "everything it looks at was seen, and nothing stands out"
        case Found(findings=findings, unseen=unseen):
            worst = min(findings, key=lambda finding: finding.severity.rank)
            more = f" (+{len(findings) - 1} more)" if len(findings) > 1 else ""
            return f"{worst.title}{more}{_besides(unseen)}"
        case NotApplicable(reason=reason):
            return reason
        case Unknown(problem=problem):
            return problem.detail


def _besides(unseen: tuple[Problem, ...]) -> str:
    return f"; not seen: {unseen[0].detail}" if unseen else ""
