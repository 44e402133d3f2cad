"""Order of repair, counts and exit codes."""

from __future__ import annotations

import pytest

from gapline.orchestrator.judged import Judged
from gapline.orchestrator.merger import FIRST, exit_code, in_order, outcome_entry, settled
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Severity
from gapline.orchestrator.model.outcome import Found, Outcome, Passed, Status, Unknown
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import OutcomeEntry, TargetEntry
from tests.unit.invented import (
    DENIED,
    STOPPED,
    TIMES,
    Level,
    entry,
    finding,
    found,
    level_agent,
    pair_agent,
    reported,
    run,
    target,
    unknown,
)

BUG = Problem(kind=ProblemKind.DEFECT, detail="a bug")
LOW = finding(severity=Severity.LOW)
FACT = Level(percent=3)


def written(outcome: Outcome) -> OutcomeEntry:
    """As it is written."""
    return outcome_entry(Judged("pve1", level_agent(), outcome, TIMES), 0)


def test_worst_first_then_best_backed() -> None:
    """Severity, then effect, then confidence, then code; never the order of arrival."""
    ranked = [
        finding("z", Severity.CRITICAL),
        finding("z", Severity.HIGH, effect=Effect.BREAKS),
        finding("z", Severity.HIGH, effect=Effect.MEASURED),
        finding("a", Severity.HIGH, effect=Effect.DOCUMENTED),
        finding("b", Severity.HIGH, effect=Effect.DOCUMENTED),
        finding("a", Severity.HIGH, effect=Effect.DOCUMENTED, confidence=Confidence.INFERRED),
        finding("a", Severity.INFO),
    ]
    expected = [reported(one) for one in ranked]
    assert in_order(reversed(expected)) == expected


def test_answer_names_a_handful_from_medium_up() -> None:
    """As many as a person takes in, none that does not matter, none that is waived."""
    findings = [finding(f"c{number}", subject=str(number)) for number in range(FIRST + 2)]
    assert len(run(found(*findings)).summary.first) == FIRST
    assert run(found(LOW)).summary.first == ()
    waived = found().model_copy(update={"findings": (reported(finding(), waived=True),)})
    assert run(waived).summary.first == ()


def test_counts() -> None:
    """Every severity and status is named, with zero where there is none."""
    summary = run(found(), found(LOW, agent="b"), entry(agent="c"), unknown(agent="d")).summary
    assert summary.findings == {"critical": 0, "high": 1, "medium": 0, "low": 1, "info": 0}
    assert summary.statuses == {"passed": 1, "found": 2, "not_applicable": 0, "unknown": 1}
    assert (summary.targets, summary.audited) == (1, 1)


@pytest.mark.parametrize(
    ("code", "outcomes", "targets"),
    [
        (0, [entry()], [target()]),
        (0, [entry(), entry(Status.NOT_APPLICABLE, agent="b")], [target()]),
        (0, [found(LOW)], [target()]),
        (0, [entry(), unknown(STOPPED, agent="b")], [target()]),
        (0, [entry(), unknown(Problem(kind=ProblemKind.WITHHELD, detail="x"), agent="b")], [target()]),
        (1, [found()], [target()]),
        (1, [found(), unknown(agent="b")], [target("pve1", DENIED)]),
        (3, [entry(), unknown(agent="b")], [target()]),
        (3, [entry()], [target("pve1"), target("pve2", DENIED)]),
        (3, [found(LOW, unseen=(DENIED,))], [target()]),
        (3, [], [target()]),
        (3, [], []),
        (3, [unknown(STOPPED)], [target()]),
        (3, [entry(Status.NOT_APPLICABLE)], [target()]),
        (4, [entry(), unknown(BUG, agent="b")], [target()]),
        (4, [found(), unknown(BUG, agent="b")], [target()]),
        (4, [], [target("pve1", BUG)]),
    ],
)
def test_exit_codes(code: int, outcomes: list[OutcomeEntry], targets: list[TargetEntry]) -> None:
    """0 clean, 1 found, 3 could not look, 4 ours; nothing seen is never 0."""
    assert exit_code("high", targets, outcomes) == code


@pytest.mark.parametrize(
    ("fail_on", "severity", "code"),
    [
        ("critical", Severity.HIGH, 0),
        ("critical", Severity.CRITICAL, 1),
        ("high", Severity.HIGH, 1),
        ("info", Severity.INFO, 1),
        ("none", Severity.CRITICAL, 0),
    ],
)
def test_fail_on(fail_on: str, severity: Severity, code: int) -> None:
    """Findings count from the limit on; `none` never fails."""
    assert exit_code(fail_on, [target()], [found(finding(severity=severity))]) == code


def test_waived_findings_do_not_fail() -> None:
    """A waiver is a decision."""
    waived = found().model_copy(update={"findings": (reported(finding(), waived=True),)})
    assert exit_code("info", [target()], [waived]) == 0


@pytest.mark.parametrize(
    ("outcome", "status", "reason"),
    [
        (Passed(FACT), Status.PASSED, "everything it looks at was seen, and nothing stands out"),
        (Found(FACT, (LOW, finding("x"))), Status.FOUND, "x on gauge (+1 more)"),
        (Found(FACT, (LOW,), (DENIED,)), Status.FOUND, "level.low on gauge; not seen: only root may look"),
        (Unknown(DENIED, FACT), Status.UNKNOWN, "only root may look"),
    ],
)
def test_an_outcome_as_it_is_written(outcome: Outcome, status: Status, reason: str) -> None:
    """Status, one sentence, the fact and worst finding first."""
    one = written(outcome)
    assert (one.status, one.reason, one.age, one.snapshot) == (status, reason, 0, 0)
    assert one.fact is not None
    assert one.fact.read() == {"percent": 3}
    assert [f.severity.rank for f in one.findings] == sorted(f.severity.rank for f in one.findings)


def _subjects(*findings: Finding) -> set[str]:
    return {one.fingerprint for one in found(*findings).findings}


def test_fingerprints_tell_targets_codes_and_subjects_apart() -> None:
    """Equal for the same thing in every run, different for everything else."""
    assert _subjects(finding()) == _subjects(finding(severity=Severity.LOW))
    assert len(_subjects(finding("a"), finding("b"), finding("a", subject="x"))) == 3
    assert found().findings[0].fingerprint != found(target="pve2").findings[0].fingerprint


def test_one_fault_on_many_targets_takes_one_place() -> None:
    """Five machines with the same fault leave room for the others."""
    many = [found(finding("same")).model_copy(update={"target": f"pve{number}"}) for number in range(FIRST + 1)]
    many = [
        one.model_copy(update={"findings": (one.findings[0].model_copy(update={"fingerprint": one.target}),)})
        for one in many
    ]
    assert len(run(*many, found(finding("other"))).summary.first) == 2


def test_a_finding_yields_to_the_agent_that_sees_more() -> None:
    """Where the other agent has answered its finding counts; where it could not, the weaker one stays."""
    weak = level_agent(codes=(Code(code="level.low", title="low", meaning="it is low", yields_to="pair.gate"),))
    inferred = Judged("pve1/7", weak, Found(FACT, (finding("level.low"), finding("other"))), TIMES)
    alone = Judged("pve1/7", weak, Found(FACT, (finding("level.low"),)), TIMES)
    seen, lost = (Judged("pve1/7", pair_agent(id="pair.gate"), one, TIMES) for one in (Passed(FACT), Unknown(DENIED)))
    kept = settled((inferred, seen))[0].outcome
    assert isinstance(kept, Found)
    assert [one.code for one in kept.findings] == ["other"]
    assert settled((alone, seen))[0].outcome == Passed(FACT)
    assert settled((alone, lost))[0] is alone
