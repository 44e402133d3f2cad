"""Agent `container.rlimits`: the resource limits of the inference process, and what they mean for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container.gpu_processes import PROCESSES, ContainerProcesses, GpuProcess, container_processes
from gapline.agents.container.limit_findings import CODES, few_files, little_memlock
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Source

__all__ = ["AGENT", "ContainerProcesses"]

SOURCES: Mapping[str, Source] = {"processes": PROCESSES}


def parse(captures: Captures) -> ContainerProcesses:
    return container_processes(captures.need("processes"))


def judge(fact: ContainerProcesses, limits: Limits) -> Outcome:
    return judged(fact, tuple(_findings(fact, limits)), _unseen(fact))


def _findings(fact: ContainerProcesses, limits: Limits) -> Iterator[Finding]:
    yield from little_memlock(fact.gpu, fact.rdma, int(limits.number("memlock_bytes")))
    yield from few_files(fact.gpu, int(limits.number("open_files")))


def _unseen(fact: ContainerProcesses) -> tuple[Problem, ...]:
    """Without a GPU process only an unlimited init says something: systemd passes a higher limit of its own on."""
    if fact.gpu or _unlimited(fact.init):
        return ()
    why = "no process of the container holds a GPU node open" if fact.searched else "the container's cgroup is unknown"
    problem = Problem(
        kind=ProblemKind.UNSEEN,
        detail=f"{why}, so the limits of the inference process were not seen",
        hint="Start the inference server and run again: gapline rerun container.rlimits",
    )
    return (problem,)


def _unlimited(process: GpuProcess) -> bool:
    limit = process.limit("Max locked memory")
    return limit is not None and limit.soft is None


AGENT = Agent(
    id="container.rlimits",
    title="Resource limits of the inference process",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=ContainerProcesses,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
    limits=("memlock_bytes", "open_files"),
)
