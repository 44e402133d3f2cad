"""A fresh partial run merged into an older one, and what became of each finding."""

from __future__ import annotations

import pytest

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import OutcomeEntry, Run
from gapline.orchestrator.remerge import State, changes, remerge, with_unanswered
from tests.unit.invented import DENIED, STOPPED, entry, finding, found, run, target, unknown

A, B = finding("a"), finding("b")
MOOT = {"reason": "no gauge any more"}


def states(old: Run, new: Run) -> dict[str, State]:
    """What became of each code."""
    return {change.code: change.state for change in changes(old, new, remerge(old, new)).changes}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (found(A), entry(), {"a": State.FIXED}),
        (found(A), found(A), {"a": State.STILL}),
        (entry(), found(A), {"a": State.NEW}),
        (found(A, B), found(B), {"a": State.FIXED, "b": State.STILL}),
        (found(A), unknown(), {"a": State.UNKNOWN}),
        (found(A), entry(Status.NOT_APPLICABLE), {"a": State.UNKNOWN}),
        (found(A), found(B, unseen=(DENIED,)), {"a": State.UNKNOWN, "b": State.NEW}),
        (entry(), unknown(), {}),
    ],
    ids=["fixed", "still", "new", "one of two", "unknown", "moot", "seen in part", "never found"],
)
def test_states(before: OutcomeEntry, after: OutcomeEntry, expected: dict[str, State]) -> None:
    """Fixed is said only where everything was seen again."""
    assert states(run(before), run(after)) == expected


def test_changes_tell_both_severities_worst_first() -> None:
    """Before and after, and None where there was or is no finding."""
    old = run(found(finding("a", Severity.LOW), finding("b", Severity.HIGH)))
    new = run(found(finding("a", Severity.CRITICAL), finding("c", Severity.INFO)))
    told = [(one.code, one.before, one.after) for one in changes(old, new, remerge(old, new)).changes]
    assert told == [
        ("b", Severity.HIGH, None),
        ("a", Severity.LOW, Severity.CRITICAL),
        ("c", None, Severity.INFO),
    ]


def test_other_targets_are_other_findings() -> None:
    """The same code on another host is another finding."""
    old = run(found(A), found(A, target="pve2"))
    assert states(old, run(entry())) == {"a": State.FIXED}
    new = run(entry())
    assert {one.target for one in changes(old, new, remerge(old, new)).changes} == {"pve1"}


def test_fresh_answers_replace_old_ones_and_the_rest_ages() -> None:
    """Age counts merges since an answer was collected; snapshot indexes point into the longer list."""
    old = run(found(A), entry(agent="host.other"), snapshots=("s1", "s2"))
    merged = remerge(old, run(entry(), entry(agent="host.more"), snapshots=("s3",)))
    by_agent = {one.agent: (one.age, one.snapshot) for one in merged.outcomes}
    assert by_agent == {"host.level": (0, 2), "host.other": (1, 0), "host.more": (0, 2)}
    assert merged.run.snapshots == ("s1", "s2", "s3")
    assert merged.summary.findings["high"] == 0
    again = remerge(merged, run(entry(), snapshots=("s4",)))
    assert {one.agent: one.age for one in again.outcomes} == {"host.level": 0, "host.other": 2, "host.more": 1}


def test_unknown_never_displaces_known() -> None:
    """The finding stays, a run older, says that it could not be seen again, and the exit code stays bad."""
    merged = remerge(run(found(A)), run(unknown()))
    (kept,) = merged.outcomes
    assert (kept.status, kept.age, kept.snapshot, kept.unseen) == (Status.FOUND, 1, 0, (DENIED,))
    assert [one.code for one in kept.findings] == ["a"]
    assert merged.summary.exit_code == 1
    passed = remerge(run(entry()), run(unknown()))
    assert (passed.outcomes[0].status, passed.summary.exit_code) == (Status.PASSED, 3)


def test_unknown_replaces_unknown() -> None:
    """The newer reason is the better one."""
    merged = remerge(run(unknown()), run(unknown(STOPPED)))
    assert (merged.outcomes[0].problem, merged.outcomes[0].age) == (STOPPED, 0)


def test_a_finding_does_not_vanish_when_its_question_does() -> None:
    """A GPU that fell off its bus has no findings; they are not fixed by that."""
    merged = remerge(run(found(A)), run(entry(Status.NOT_APPLICABLE, reason="no gauge")))
    assert [one.code for one in merged.outcomes[0].findings] == ["a"]
    assert "does not apply any more: no gauge" in merged.outcomes[0].unseen[0].detail
    harmless = remerge(run(entry()), run(entry(Status.NOT_APPLICABLE)))
    assert harmless.outcomes[0].status is Status.NOT_APPLICABLE


def test_a_finding_in_an_unseen_part_stays() -> None:
    """The new answer holds what it found and what it could not disprove."""
    merged = remerge(run(found(A, B)), run(found(B, unseen=(DENIED,))))
    assert sorted(one.code for one in merged.outcomes[0].findings) == ["a", "b"]
    assert merged.outcomes[0].age == 0


def test_targets_are_as_they_were_met_last() -> None:
    """A container that was not looked at this time keeps its entry; one that is new on a known host is added."""
    old = run(entry(), targets=(target(), target("pve1/7"), target("pve1/8", audited=False)))
    fresh = (target("pve1", DENIED), target("pve1/7", audited=False), target("pve1/9"), target("pve5/1"))
    merged = remerge(old, run(entry(), targets=fresh))
    told = {one.id: (one.audited, one.problem) for one in merged.targets}
    assert told == {
        "pve1": (True, DENIED),
        "pve1/7": (True, None),
        "pve1/8": (False, None),
        "pve1/9": (True, None),
    }


def test_containers_of_a_lost_host_are_unknown() -> None:
    """A host that is not reached lists no container; what was asked about them is answered as unknown."""
    old = run(entry(), found(A, target="pve1/7", agent="pair.gate"), targets=(target(), target("pve1/7")))
    lost = run(unknown(), targets=(target("pve1", DENIED),))
    assert states(old, lost) == {}
    complete = with_unanswered(old, lost, lambda one: one.agent == "pair.gate")
    assert states(old, complete) == {"a": State.UNKNOWN}
    assert complete.outcomes[-1].problem == DENIED
    merged = remerge(old, complete)
    assert [one.code for one in merged.outcomes[1].findings] == ["a"]
    assert complete.summary.exit_code == 3


def test_nothing_is_added_where_nobody_asked() -> None:
    """Agents that were not to run again are not unknown."""
    old = run(entry(), found(A, agent="host.other"))
    new = run(entry())
    assert with_unanswered(old, new, lambda _: False) is new
