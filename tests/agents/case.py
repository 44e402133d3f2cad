"""One data case: a folder with what the sources printed and what the agent must say about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gapline.orchestrator.analyse import analyse, analyse_pair
from gapline.orchestrator.collect.item import Binding
from gapline.orchestrator.model.agent import Agent, AnyAgent, PairAgent, Scope
from gapline.orchestrator.model.limit import Limit, Limits
from gapline.orchestrator.model.outcome import Fact, Found, NotApplicable, Outcome, Passed, Unknown
from tests.agents.known import HERE, agent_called, agent_with, all_agents, full_playbook
from tests.agents.recorded import BINDING, CONTAINER, HOST, captures

_NOTHING: Mapping[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class Case:
    """`tests/agents/AGENT/cases/NAME`."""

    agent: str
    folder: Path

    @property
    def name(self) -> str:
        """Of its folder."""
        return self.folder.name

    @property
    def expected(self) -> dict[str, Any]:
        """What expect.json asks for."""
        loaded: dict[str, Any] = json.loads((self.folder / "expect.json").read_text())
        return loaded

    def judge(self, patched: Mapping[str, bytes] = _NOTHING) -> Outcome:
        """The outcome, through the same functions as in an audit."""
        agent = agent_called(self.agent)
        if isinstance(agent, PairAgent):
            return analyse_pair(agent, dict(self._facts(agent, patched)), self._limits(agent))
        return self._one(agent, self.folder, patched)

    def _facts(self, pair: PairAgent, patched: Mapping[str, bytes]) -> Iterator[tuple[type[Fact], tuple[str, Outcome]]]:
        for kind in (*pair.needs, *pair.wants):
            agent = agent_with(kind)
            folder = self.folder / agent.id
            if folder.is_dir():
                yield kind, (agent.id, self._one(agent, folder, patched))

    def _one(self, agent: Agent[Any], folder: Path, patched: Mapping[str, bytes]) -> Outcome:
        on_host = agent.scope is Scope.HOST
        target, binding = (HOST, None) if on_host else (CONTAINER, self.binding())
        return analyse(agent, captures(folder, agent.sources, target, binding, patched), self._limits(agent))

    def binding(self) -> Binding:
        """What the placeholders of its container stand for."""
        path = self.folder / "binding.json"
        return Binding(**json.loads(path.read_text())) if path.is_file() else BINDING

    def _limits(self, agent: AnyAgent) -> Limits:
        shipped = dict(full_playbook().limits(agent.id))
        own = self.expected.get("limits", {}) if agent.id == self.agent else {}
        changed = {name: Limit(value=_frozen(value), origin="this case") for name, value in own.items()}
        return Limits({**shipped, **changed})


@cache
def outcome(case: Case) -> Outcome:
    """The case as recorded; many tests ask for it."""
    return case.judge()


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def all_cases() -> tuple[Case, ...]:
    """Every case of every agent."""
    return tuple(
        Case(agent.id, path.parent)
        for agent in all_agents()
        for path in sorted((HERE / agent.id / "cases").glob("*/expect.json"))
    )


def reason(outcome: Outcome) -> str:
    """The words of an outcome that has no findings."""
    match outcome:
        case NotApplicable(reason=text):
            return text
        case Unknown(problem=problem):
            return f"{problem.kind} {problem.detail} {problem.hint}"
        case Found() | Passed():
            return ""
