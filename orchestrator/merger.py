"""From judged targets to a finished run: entries, layers, order of repair, exit code. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gapline.orchestrator.judged import Judged
from gapline.orchestrator.layers import layer_entries
from gapline.orchestrator.model.agent import Agent
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Severity, fingerprint
from gapline.orchestrator.model.outcome import Found, NotApplicable, Outcome, Passed, Status, Unknown, status
from gapline.orchestrator.model.outcome import judged as as_outcome
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import Header, OutcomeEntry, ReportedFinding, Run, Summary, TargetEntry, Times
from gapline.orchestrator.model.trait import Trait
from gapline.orchestrator.model.written_fact import WrittenFact
from gapline.orchestrator.odd_one_out import AGENT as ODD_ONE_OUT
from gapline.orchestrator.odd_one_out import odd_ones

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
        findings=_reported(judged.target, outcome.findings) if isinstance(outcome, Found) else (),
        traits=_traits(judged),
    )


def _traits(judged: Judged) -> tuple[Trait, ...]:
    fact = judged.outcome.fact
    return judged.agent.traits(fact) if isinstance(judged.agent, Agent) and fact is not None else ()


def merge(header: Header, targets: Sequence[TargetEntry], outcomes: Sequence[OutcomeEntry]) -> Run:
    """The run document. Findings stand worst first within each outcome, outcomes as given.

    Behind them come the hosts that are odd ones out; what earlier merges said of those is dropped.
    """
    told = [outcome for outcome in outcomes if outcome.agent != ODD_ONE_OUT.id]
    every = (*told, *_compared(targets, told))
    return Run(
        run=header,
        targets=tuple(targets),
        outcomes=every,
        layers=layer_entries(targets, every),
        summary=summarise(header.fail_on, targets, every),
    )


def _compared(targets: Sequence[TargetEntry], outcomes: Sequence[OutcomeEntry]) -> Iterator[OutcomeEntry]:
    """An outcome for each host that is an odd one out, made when the last answer was there."""
    last = max((outcome.times.judged or 0.0 for outcome in outcomes if outcome.age == 0), default=0.0)
    for host, findings in odd_ones(targets, outcomes).items():
        yield OutcomeEntry(
            target=host,
            agent=ODD_ONE_OUT.id,
            title=ODD_ONE_OUT.title,
            layer=ODD_ONE_OUT.layer,
            status=Status.FOUND,
            reason=_worst(findings),
            problem=None,
            unseen=(),
            times=Times(planned=last, collected=last, judged=last),
            snapshot=None,
            age=0,
            fact=None,
            findings=_reported(host, findings),
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


def _reported(target: str, findings: Iterable[Finding]) -> tuple[ReportedFinding, ...]:
    reported = (
        ReportedFinding(
            **{name: getattr(finding, name) for name in Finding.model_fields},
            fingerprint=fingerprint(target, finding.code, finding.subject),
        )
        for finding in findings
    )
    return tuple(in_order(reported))


def _reason(outcome: Outcome) -> str:
    match outcome:
        case Passed():
            return "everything it looks at was seen, and nothing stands out"
        case Found(findings=findings, unseen=unseen):
            return f"{_worst(findings)}{_besides(unseen)}"
        case NotApplicable(reason=reason):
            return reason
        case Unknown(problem=problem):
            return problem.detail


def _worst(findings: Sequence[Finding]) -> str:
    worst = min(findings, key=lambda finding: finding.severity.rank)
    return f"{worst.title} (+{len(findings) - 1} more)" if len(findings) > 1 else worst.title


def _besides(unseen: tuple[Problem, ...]) -> str:
    return f"; not seen: {unseen[0].detail}" if unseen else ""
