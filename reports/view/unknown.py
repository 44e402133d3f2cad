"""What could not be seen, grouped by what would make it visible: one grant often answers many questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import Run
from gapline.reports.prose import Piece, prose
from gapline.reports.view.anchor import Anchors
from gapline.reports.view.words import PROBLEMS
from gapline.reports.visible import clipped

_WIDTH = 500
_ROWS = 200


@dataclass(frozen=True, slots=True)
class UnseenRow:
    """One thing on one target, with everyone who missed it."""

    target: str
    anchor: str | None
    detail: str
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unseen:
    """Everything that the same step would make visible."""

    label: str  # the kind of problem
    hint: tuple[Piece, ...]  # empty: nobody knows a step
    agents: int
    targets: int
    rows: tuple[UnseenRow, ...]
    more: int  # rows left out


def unseen(run: Run, anchors: Anchors) -> tuple[Unseen, ...]:
    """The groups, the one that hides most first. What follows from another unseen thing comes last."""
    groups: dict[tuple[ProblemKind, str], dict[tuple[str, str], list[str]]] = {}
    for target, agent, problem in _problems(run):
        detail = problem.detail.removeprefix(f"{target}: ")
        missed = groups.setdefault((problem.kind, problem.hint), {}).setdefault((target, detail), [])
        if agent and agent not in missed:
            missed.append(agent)
    views = [_group(kind, hint, missed, anchors) for (kind, hint), missed in groups.items()]
    last = PROBLEMS[ProblemKind.UNSEEN]
    return tuple(sorted(views, key=lambda view: (view.label == last, -view.agents, -view.targets)))


def _problems(run: Run) -> Iterator[tuple[str, str, Problem]]:
    for target in run.targets:
        if target.problem is not None:
            yield target.id, "", target.problem
    for entry in run.outcomes:
        problems = [entry.problem] if entry.problem is not None and entry.status is Status.UNKNOWN else []
        yield from ((entry.target, entry.agent, problem) for problem in dict.fromkeys((*problems, *entry.unseen)))


def _group(kind: ProblemKind, hint: str, missed: dict[tuple[str, str], list[str]], anchors: Anchors) -> Unseen:
    rows = tuple(
        UnseenRow(target, anchors.of_target(target), clipped(detail, _WIDTH), tuple(agents))
        for (target, detail), agents in missed.items()
    )
    return Unseen(
        label=PROBLEMS[kind],
        hint=prose(clipped(hint, _WIDTH)),
        agents=sum(len(row.agents) for row in rows),
        targets=len({row.target for row in rows}),
        rows=rows[:_ROWS],
        more=max(len(rows) - _ROWS, 0),
    )
