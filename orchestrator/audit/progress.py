"""What an observer is told while an audit runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gapline.orchestrator.model.outcome import Outcome
from gapline.orchestrator.model.problem import Problem


@dataclass(frozen=True, slots=True)
class HostStarted:
    """A host's turn has come; it is being connected to."""

    host: str


@dataclass(frozen=True, slots=True)
class TargetPlanned:
    """A target was met, and this many agents will look at it."""

    target: str
    agents: int


@dataclass(frozen=True, slots=True)
class AgentJudged:
    """An agent has its outcome."""

    target: str
    agent: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class HostFinished:
    """Nothing more will come from a host. `problem`: why it was not reached, or only in part."""

    host: str
    problem: Problem | None


Event = HostStarted | TargetPlanned | AgentJudged | HostFinished
Observe = Callable[[Event], None]
