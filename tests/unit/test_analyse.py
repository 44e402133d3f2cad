"""From captures to outcomes, whatever an agent does."""

from __future__ import annotations

from typing import Any

import pytest

from gapline.orchestrator.analyse import analyse, analyse_pair
from gapline.orchestrator.judged import Judged
from gapline.orchestrator.merger import exit_code, outcome_entry
from gapline.orchestrator.model.agent import Agent
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.limit import Limit, Limits
from gapline.orchestrator.model.outcome import Fact, Found, NotApplicable, Outcome, Passed, Unknown
from gapline.orchestrator.model.problem import ProblemKind
from tests.unit.invented import (
    DENIED,
    LEVEL_FILE,
    TIMES,
    Gate,
    Level,
    capture,
    level_agent,
    pair_agent,
    target,
)

NONE = Limits({})
Answers = dict[type[Fact], tuple[str, Outcome]]


def outcome(text: str = "50", agent: Agent[Any] | None = None, limits: Limits = NONE) -> Outcome:
    """What the agent makes of it."""
    return analyse(agent or level_agent(), Captures({"level": capture(LEVEL_FILE, text)}), limits)


def boom(*_: object) -> Any:
    """A bug."""
    raise KeyError("gpu 3")


def test_the_four_answers() -> None:
    """Each way out of parse and judge has its outcome."""
    assert outcome("50") == Passed(Level(percent=50))
    assert isinstance(outcome("3"), Found)
    assert outcome("none") == NotApplicable("there is no gauge")
    unread = outcome("a lot")
    assert isinstance(unread, Unknown)
    assert unread.problem.kind is ProblemKind.UNREADABLE
    assert "'a lot'" in unread.problem.detail


def test_limits_come_from_the_playbook() -> None:
    """The same fact, another limit, another answer."""
    strict = Limits({"least": Limit(value=60, origin="judgement")})
    assert isinstance(outcome("50", limits=strict), Found)


def test_unread_source_is_unknown_and_named() -> None:
    """The problem keeps its kind and says which source it concerns."""
    answer = analyse(level_agent(), Captures({"level": capture(LEVEL_FILE, "50", DENIED)}), NONE)
    assert isinstance(answer, Unknown)
    assert answer.problem.kind is ProblemKind.DENIED
    assert answer.problem.detail == "file:/proc/gauge: only root may look"
    assert answer.problem.hint == DENIED.hint


@pytest.mark.parametrize(
    "agent",
    [
        level_agent(parse=boom),
        level_agent(judge=boom),
        level_agent(judge=lambda *_: None),
        level_agent(judge=lambda *_: True),
        level_agent(judge=lambda fact, _: Found(fact, ())),
        level_agent(sources={"level": LEVEL_FILE}, parse=lambda captures: captures["other"]),
    ],
    ids=["parse raises", "judge raises", "nothing", "no outcome", "found nothing", "unknown source"],
)
def test_bug_of_an_agent_is_a_defect_of_that_agent(agent: Agent[Any]) -> None:
    """It ends as unknown, named, and makes the exit code 4; it never ends the audit."""
    answer = outcome("50", agent)
    assert isinstance(answer, Unknown)
    assert answer.problem.kind is ProblemKind.DEFECT
    assert "host.level" in answer.problem.detail
    written = outcome_entry(Judged("pve1", agent, answer, TIMES), 0)
    assert exit_code("high", [target()], [written]) == 4


def test_pair_judges_both_facts() -> None:
    """Both facts there: the pair judges."""
    both: Answers = {Level: ("host.level", outcome("50")), Gate: ("container.gate", Passed(Gate(open=False)))}
    assert isinstance(analyse_pair(pair_agent(), both, NONE), Found)


def test_pair_without_a_fact_says_whose() -> None:
    """Unknown stays unknown with its kind, not applicable stays that, and nothing is a finding."""
    gate: tuple[str, Outcome] = ("container.gate", Passed(Gate(open=False)))
    denied: Answers = {Level: ("host.level", Unknown(DENIED)), Gate: gate}
    unread = analyse_pair(pair_agent(), denied, NONE)
    assert isinstance(unread, Unknown)
    assert unread.problem.kind is ProblemKind.DENIED
    assert unread.problem.detail.startswith("host.level is unknown")
    moot = analyse_pair(pair_agent(), {Level: ("host.level", NotApplicable("no gauge")), Gate: gate}, NONE)
    assert moot == NotApplicable("host.level: no gauge")
    missing = analyse_pair(pair_agent(), {Gate: gate}, NONE)
    assert isinstance(missing, Unknown)
    assert missing.problem.kind is ProblemKind.UNSEEN


def test_pair_uses_a_partial_fact() -> None:
    """An unknown outcome that still holds a fact is good enough for what needs that fact."""
    both: Answers = {Level: ("host.level", Unknown(DENIED, Level(percent=1))), Gate: ("g", Passed(Gate(open=False)))}
    assert isinstance(analyse_pair(pair_agent(), both, NONE), Found)


def test_pair_goes_on_without_what_it_only_wants() -> None:
    """A fact that it wants may be missing."""
    pair = pair_agent(needs=(Gate,), wants=(Level,), judge=lambda facts, _: Passed(facts.get(Level) or facts.of(Gate)))
    gate = Passed(Gate(open=True))
    assert analyse_pair(pair, {Gate: ("g", gate), Level: ("l", Unknown(DENIED))}, NONE) == gate


@pytest.mark.parametrize("judge", [boom, lambda *_: None], ids=["raises", "nothing"])
def test_bug_of_a_pair_is_a_defect(judge: Any) -> None:
    """As for any agent."""
    both: Answers = {Level: ("host.level", outcome("50")), Gate: ("container.gate", Passed(Gate(open=True)))}
    answer = analyse_pair(pair_agent(judge=judge), both, NONE)
    assert isinstance(answer, Unknown)
    assert answer.problem.kind is ProblemKind.DEFECT
