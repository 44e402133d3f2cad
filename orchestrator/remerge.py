"""A fresh partial run merged into an older one, and what changed between the two. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from gapline.orchestrator.merger import merge
from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import OutcomeEntry, ReportedFinding, Run, TargetEntry, Times
from gapline.orchestrator.odd_one_out import AGENT as ODD_ONE_OUT


class State(StrEnum):
    """What became of a finding."""

    FIXED = "fixed"  # looked again, and it is gone
    STILL = "still"
    NEW = "new"
    UNKNOWN = "unknown"  # it could not be seen this time


class Change(BaseModel):
    """One finding before and after."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fingerprint: str
    target: str
    code: str
    before: Severity | None
    after: Severity | None
    state: State


class Changes(BaseModel):
    """What a rerun changed, schema `gapline/rerun/1`."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    schema_: Literal["gapline/rerun/1"] = Field(default="gapline/rerun/1", alias="schema")
    changes: tuple[Change, ...]


_Key = tuple[str, str]  # target, agent


def remerge(old: Run, new: Run) -> Run:
    """The old run with the new answers in it.

    What was known is not displaced by what could not be seen: a known answer stays, a run older, where the new one is
    unknown; so do findings where the question does not arise any more, and single findings where the new answer could
    not see everything.
    """
    shift = len(old.run.snapshots)
    fresh = {_key(entry): _shifted(entry, shift) for entry in new.outcomes}
    kept = [_renewed(entry, fresh.pop(_key(entry), None)) for entry in old.outcomes]
    header = new.run.model_copy(
        update={
            "started": old.run.started,
            "playbook": old.run.playbook,
            "fail_on": old.run.fail_on,
            "synthetic": old.run.synthetic or new.run.synthetic,
            "snapshots": (*old.run.snapshots, *new.run.snapshots),
        }
    )
    merged = merge(header, _targets(old.targets, new.targets), [*kept, *fresh.values()])
    return merged.model_copy(update={"ceiling": old.ceiling, "waterfall": old.waterfall})


def with_unanswered(old: Run, new: Run, asked: Callable[[OutcomeEntry], bool]) -> Run:
    """The new run with an unknown answer for each old one that was asked again and did not come.

    So it is with the containers of a host that was not reached, or that lists one of them no longer.
    """
    answered = {_key(entry) for entry in new.outcomes}
    problems = {target.id: target.problem for target in new.targets}
    missing = [
        _unanswered(entry, problems.get(entry.target.partition("/")[0]))
        for entry in old.outcomes
        if _key(entry) not in answered and asked(entry)
    ]
    return merge(new.run, new.targets, [*new.outcomes, *missing]) if missing else new


def _unanswered(old: OutcomeEntry, problem: Problem | None) -> OutcomeEntry:
    gone = Problem(kind=ProblemKind.UNSEEN, detail=f"{old.target} was not looked at", hint="See `gapline discover`.")
    seen = problem or gone
    return old.model_copy(
        update={
            "status": Status.UNKNOWN,
            "reason": seen.detail,
            "problem": seen,
            "unseen": (),
            "times": Times(planned=0.0, collected=None, judged=None),
            "snapshot": None,
            "age": 0,
            "fact": None,
            "findings": (),
        }
    )


def changes(old: Run, new: Run, merged: Run) -> Changes:
    """What became of every finding of the agents that ran again, and of those that compare their traits; worst first.

    Hosts are compared in the `merged` run only: the fresh part may hold a single one.
    """
    before = {_key(entry): entry for entry in old.outcomes}
    told = (entry for entry in new.outcomes if entry.agent != ODD_ONE_OUT.id)
    found = [change for entry in told for change in _of_outcome(before.get(_key(entry)), entry)]
    found += _of_comparison(old, new, merged)
    return Changes(
        changes=tuple(sorted(found, key=lambda one: ((one.before or one.after or Severity.INFO).rank, one.code)))
    )


def _of_outcome(before: OutcomeEntry | None, after: OutcomeEntry) -> Iterator[Change]:
    was, now = _by_fingerprint(before), _by_fingerprint(after)
    seen = _all_seen(after)
    for fingerprint in {**was, **now}:
        old, new = was.get(fingerprint), now.get(fingerprint)
        yield Change(
            fingerprint=fingerprint,
            target=after.target,
            code={**was, **now}[fingerprint].code,
            before=old.severity if old else None,
            after=new.severity if new else None,
            state=_state(old, new, seen=seen),
        )


def _of_comparison(old: Run, new: Run, merged: Run) -> Iterator[Change]:
    """What is compared by the agents that ran again. A host that did not answer this time is neither odd nor alike."""
    again = {entry.agent for entry in new.outcomes}
    unseen = {_key(entry) for entry in new.outcomes if not _all_seen(entry)}
    was, now = _odd(old, again), _odd(merged, again)
    for place, finding in {**was, **now}.items():
        before, after = was.get(place), now.get(place)
        target, fingerprint = place
        seen = (target, finding.remedy.verify_agent) not in unseen
        yield Change(
            fingerprint=fingerprint,
            target=target,
            code=finding.code,
            before=before.severity if before else None,
            after=after.severity if after else None,
            state=_state(before, after, seen=True) if seen else State.UNKNOWN,
        )


def _odd(run: Run, agents: set[str]) -> dict[tuple[str, str], ReportedFinding]:
    """The findings of the comparison that rest on these agents, by target and fingerprint."""
    return {
        (entry.target, finding.fingerprint): finding
        for entry in run.outcomes
        if entry.agent == ODD_ONE_OUT.id
        for finding in entry.findings
        if finding.remedy.verify_agent in agents
    }


def _state(old: ReportedFinding | None, new: ReportedFinding | None, *, seen: bool) -> State:
    if new is not None:
        return State.STILL if old is not None else State.NEW
    return State.FIXED if seen else State.UNKNOWN


def _by_fingerprint(entry: OutcomeEntry | None) -> Mapping[str, ReportedFinding]:
    return {finding.fingerprint: finding for finding in entry.findings} if entry is not None else {}


def _all_seen(entry: OutcomeEntry) -> bool:
    """Whether a finding that is not there is gone: not so where a part was not seen, or nobody had to look."""
    return entry.status is Status.PASSED or (entry.status is Status.FOUND and not entry.unseen)


def _renewed(old: OutcomeEntry, fresh: OutcomeEntry | None) -> OutcomeEntry:
    aged = old.model_copy(update={"age": old.age + 1})
    if fresh is None:
        return aged
    known = old.status in (Status.PASSED, Status.FOUND)
    if fresh.status is Status.UNKNOWN and known and fresh.problem is not None:
        return aged.model_copy(update={"unseen": (*old.unseen, fresh.problem)})
    if fresh.status is Status.NOT_APPLICABLE and old.findings:
        moot = Problem(kind=ProblemKind.UNSEEN, detail=f"does not apply any more: {fresh.reason}")
        return aged.model_copy(update={"unseen": (*old.unseen, moot)})
    if fresh.status is Status.FOUND and fresh.unseen:
        present = _by_fingerprint(fresh)
        lost = (finding for finding in old.findings if finding.fingerprint not in present)
        return fresh.model_copy(update={"findings": (*fresh.findings, *lost)})
    return fresh


def _shifted(entry: OutcomeEntry, by: int) -> OutcomeEntry:
    return entry if entry.snapshot is None else entry.model_copy(update={"snapshot": entry.snapshot + by})


def _targets(old: Sequence[TargetEntry], new: Sequence[TargetEntry]) -> tuple[TargetEntry, ...]:
    """The old targets, as they were met last. Containers that were not asked for again stay as they were."""
    fresh = {entry.id: entry for entry in new}
    kept = [_met_again(entry, fresh.pop(entry.id, None)) for entry in old]
    known_parents = {entry.id for entry in old}
    return (*kept, *(entry for entry in fresh.values() if entry.parent is None or entry.parent in known_parents))


def _met_again(old: TargetEntry, fresh: TargetEntry | None) -> TargetEntry:
    if fresh is None or (old.audited and not fresh.audited):
        return old
    return fresh.model_copy(update={"reason": old.reason}) if fresh.problem is None else fresh


def _key(entry: OutcomeEntry) -> _Key:
    return entry.target, entry.agent
