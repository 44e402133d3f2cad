"""The captures of one target as they arrive, and its agents, judged one by one when they have all they need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gapline.orchestrator.analyse import analyse
from gapline.orchestrator.judged import Judged
from gapline.orchestrator.model.agent import Agent, AnyAgent
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, Unknown
from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.model.run import Times

Clock = Callable[[], float]
"""Seconds since the run started."""


@dataclass(frozen=True, slots=True)
class Judging:
    """What every desk of a host judges with, and to whom it tells the outcome."""

    limits: Mapping[str, Limits]
    clock: Clock
    report: Callable[[Judged], None]

    def limits_of(self, agent: AnyAgent) -> Limits:
        """The agent's limits; none for an agent that the playbook does not name."""
        return self.limits.get(agent.id, Limits({}))


class TargetDesk:
    """Collects one target's captures and judges each of its agents once."""

    def __init__(self, target: str, agents: Iterable[Agent[Any]], judging: Judging) -> None:
        self.target = target
        self.captures: dict[str, Capture] = {}
        self.outcomes: dict[type[Fact], tuple[str, Outcome]] = {}
        self._judging = judging
        self._planned = judging.clock()
        self._waiting = {agent.id: (agent, {source.key for source in agent.sources.values()}) for agent in agents}

    @property
    def agents(self) -> int:
        """How many agents look at it, judged or not."""
        return len(self._waiting) + len(self.outcomes)

    def receive(self, capture: Capture) -> None:
        """Keep a capture and judge the agents that waited for it alone."""
        self.captures[capture.source] = capture
        for agent, missing in tuple(self._waiting.values()):
            missing.discard(capture.source)
            if not missing:
                self._judge(agent)

    def give_up(self, problem: Problem) -> None:
        """Nothing more will come: the agents that still wait are unknown."""
        for agent, _ in tuple(self._waiting.values()):
            del self._waiting[agent.id]
            self._answer(agent, Unknown(problem), None)

    def _judge(self, agent: Agent[Any]) -> None:
        del self._waiting[agent.id]
        collected = self._judging.clock()
        own = {name: self.captures[source.key] for name, source in agent.sources.items()}
        outcome = analyse(agent, Captures(own), self._judging.limits_of(agent))
        self._answer(agent, outcome, collected)

    def _answer(self, agent: Agent[Any], outcome: Outcome, collected: float | None) -> None:
        self.outcomes[agent.fact] = (agent.id, outcome)
        times = Times(planned=self._planned, collected=collected, judged=self._judging.clock())
        self._judging.report(Judged(self.target, agent, outcome, times))
