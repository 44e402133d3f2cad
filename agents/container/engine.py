"""Agent `container.engine`: the container's inference processes, how they were started, and where they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.engine.fact import Engine, logs, read
from gapline.agents.engine.judgement import LIMITS, codes, findings
from gapline.agents.engine.log import INSIDE_LOG
from gapline.agents.engine.reading import ENGINE
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Source

AGENT_ID, AREA = "container.engine", "engine"
SOURCES: Mapping[str, Source] = {"engine": ENGINE, "log": INSIDE_LOG}


class ContainerEngine(Engine):
    """The engine of a container."""


def parse(captures: Captures) -> ContainerEngine:
    """Processes must be seen; logs need not be."""
    processes, gpus, searched = read(captures)
    said, problem = logs(captures)
    return ContainerEngine(processes=processes, gpus=gpus, searched=searched, logs=said, log_problem=problem)


def judge(fact: ContainerEngine, limits: Limits) -> Outcome:
    """An idle container is unknown: nothing was there to look at."""
    return judged(fact, findings(fact, limits, AREA, AGENT_ID), tuple(_unseen(fact)))


def _unseen(fact: ContainerEngine) -> Iterator[Problem]:
    if not fact.cuda:
        why = "no process of the container uses CUDA" if fact.searched else "the container's cgroup is unknown"
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail=f"{why}, so there is no inference engine to look at",
            hint="Start the engine and run again: gapline rerun container.engine",
        )
    if fact.log_problem is not None:
        yield fact.log_problem


AGENT = Agent(
    id=AGENT_ID,
    title="Inference engine",
    layer=Layer.KERNELS,
    scope=Scope.CONTAINER,
    fact=ContainerEngine,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=codes(AREA),
    limits=LIMITS,
)
