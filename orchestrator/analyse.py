"""From captures to an outcome, and from facts to a pair's outcome. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gapline.orchestrator.model.agent import Agent, Facts, PairAgent
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import CollectError, NotApplicableError, ParseError
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Found, NotApplicable, Outcome, Passed, Unknown
from gapline.orchestrator.model.problem import Problem, ProblemKind


def analyse(agent: Agent[Any], captures: Captures, limits: Limits) -> Outcome:
    """One agent's outcome on one target. Never raises: also a bug in an agent concerns that agent only."""
    try:
        return _sound(agent.judge(agent.parse(captures), limits))
    except CollectError as error:
        return Unknown(_placed(error))
    except ParseError as error:
        return Unknown(error.problem)
    except NotApplicableError as error:
        return NotApplicable(str(error))
    except Exception as error:  # noqa: BLE001 - agents may be third parties'; their bug must not end the audit
        return Unknown(defect(agent.id, error))


def analyse_pair(pair: PairAgent, outcomes: Mapping[type[Fact], tuple[str, Outcome]], limits: Limits) -> Outcome:
    """A pair's outcome from the outcomes of the agents it needs, each with its agent's id. Never raises."""
    facts: dict[type[Fact], Fact] = {}
    for kind in (*pair.needs, *pair.wants):
        agent, outcome = outcomes.get(kind, (kind.__name__, None))
        fact = outcome.fact if outcome is not None else None
        if fact is not None:
            facts[kind] = fact
        elif kind in pair.needs:
            return _without(agent, outcome)
    try:
        return _sound(pair.judge(Facts(facts), limits))
    except Exception as error:  # noqa: BLE001 - as above
        return Unknown(defect(pair.id, error))


def _without(agent: str, outcome: Outcome | None) -> Outcome:
    match outcome:
        case NotApplicable(reason=reason):
            return NotApplicable(f"{agent}: {reason}")
        case Unknown(problem=problem):
            return Unknown(
                Problem(kind=problem.kind, detail=f"{agent} is unknown: {problem.detail}", hint=problem.hint)
            )
        case _:
            detail = f"no agent gave the fact {agent}"
            return Unknown(Problem(kind=ProblemKind.UNSEEN, detail=detail, hint="Run the agent that gives it too."))


def _sound(outcome: Outcome) -> Outcome:
    """The outcome, if it is one that can be written down.

    Raises:
        TypeError, ValueError: it is none; that is the agent's bug.
    """
    if not isinstance(outcome, Passed | Found | NotApplicable | Unknown):
        raise TypeError(f"judge gave {type(outcome).__name__}, which is no outcome")
    if isinstance(outcome, Found) and not outcome.findings:
        raise ValueError("judge gave Found without a finding")
    return outcome


def _placed(error: CollectError) -> Problem:
    """The problem with its source, so that a reader knows what could not be read."""
    problem = error.problem
    return Problem(kind=problem.kind, detail=f"{error.source}: {problem.detail}", hint=problem.hint)


def defect(agent: str, error: Exception) -> Problem:
    """A bug of an agent as a value."""
    return Problem(
        kind=ProblemKind.DEFECT,
        detail=f"agent {agent} failed: {type(error).__name__}: {str(error)[:300]}",
        hint="This is a bug of the agent, not of the machine. Please report it with the lines of log.jsonl.",
    )
