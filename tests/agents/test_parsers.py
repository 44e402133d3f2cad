"""Parsers against anything a hostile or broken target can send."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapline.orchestrator.model.agent import Agent, Scope
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import CollectError, NotApplicableError, ParseError
from gapline.orchestrator.model.outcome import Found, NotApplicable, Passed, Unknown
from gapline.orchestrator.model.problem import Problem, ProblemKind
from tests.agents.case import Case, all_cases
from tests.agents.known import all_agents, full_playbook
from tests.agents.recorded import BINDING, CONTAINER, HOST, captures

READERS = [pytest.param(agent, id=agent.id) for agent in all_agents() if isinstance(agent, Agent)]
PROBLEMS = st.none() | st.sampled_from(ProblemKind).map(lambda kind: Problem(kind=kind, detail="not found"))
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("agent", READERS)
@given(data=st.data())
@QUICK
def test_arbitrary_output(agent: Agent[Any], data: st.DataObject) -> None:
    """Whatever every source gives, the answer is a fact or one of the three errors, and judging never raises."""
    base = _base(agent, data)
    judged(agent, Captures({name: _arbitrary(base, name, data) for name in agent.sources}))


@pytest.mark.parametrize("agent", READERS)
@given(data=st.data())
@QUICK
def test_one_damaged_source(agent: Agent[Any], data: st.DataObject) -> None:
    """As above with one source of a good case damaged, which gets further into a parser than pure noise."""
    base = _base(agent, data)
    name = data.draw(st.sampled_from(sorted(agent.sources)))
    judged(agent, Captures({**base, name: _damaged(base[name], data)}))


def judged(agent: Agent[Any], given_captures: Captures) -> None:
    """Parse and judge; anything but the three errors and the four outcomes is a bug."""
    try:
        fact = agent.parse(given_captures)
    except (CollectError, ParseError, NotApplicableError):
        return
    assert isinstance(fact, agent.fact)
    outcome = agent.judge(fact, full_playbook().limits(agent.id))
    assert isinstance(outcome, Passed | Found | NotApplicable | Unknown)
    assert agent.fact.model_validate_json(fact.model_dump_json()) == fact


def _base(agent: Agent[Any], data: st.DataObject) -> Captures:
    cases: list[Case] = [case for case in all_cases() if case.agent == agent.id]
    case = data.draw(st.sampled_from(cases))
    target, binding = (HOST, None) if agent.scope is Scope.HOST else (CONTAINER, BINDING)
    return captures(case.folder, agent.sources, target, binding, {})


def _arbitrary(base: Captures, name: str, data: st.DataObject) -> Capture:
    out = data.draw(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
    return Capture(HOST, base[name].source, base[name].shown, out, problem=data.draw(PROBLEMS))


def _damaged(good: Capture, data: st.DataObject) -> Capture:
    """Cut, doubled, or with a piece replaced."""
    start = data.draw(st.integers(0, len(good.out)))
    end = data.draw(st.integers(start, min(len(good.out), start + 40)))
    piece = data.draw(st.binary(max_size=12) | st.sampled_from([b"-1", b"99999999999999999999", b"\n", b"\n\n", b"|"]))
    out = good.out[:start] + piece + good.out[end:]
    if data.draw(st.booleans()):
        out = out[: data.draw(st.integers(0, len(out)))]
    return Capture(good.target, good.source, good.shown, out, good.err, problem=good.problem)
