"""Agent `container.docker`: Docker within the container, and whether GPUs, storage and limits reach what it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container.docker_findings import AGENT_ID, CODES, docker_findings
from gapline.agents.container.docker_reading import DOCKER, NestedDocker, nested_docker
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Source

__all__ = ["AGENT", "NestedDocker"]

SOURCES: Mapping[str, Source] = {"docker": DOCKER}


def parse(captures: Captures) -> NestedDocker:
    return nested_docker(captures.need("docker"))


def judge(fact: NestedDocker, _: Limits) -> Outcome:
    """Without a daemon the question does not arise."""
    if not fact.daemons:
        return NotApplicable("no Docker daemon runs in the container", fact)
    return judged(fact, tuple(docker_findings(fact)), tuple(_unseen(fact)))


def _unseen(fact: NestedDocker) -> Iterator[Problem]:
    if "dockerd" in fact.daemons and not fact.asked:
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail="`docker info` gave no answer, so storage driver and runtimes were not seen",
            hint="Run `docker info` in the container.",
        )


AGENT = Agent(
    id=AGENT_ID,
    title="Docker within the container",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=NestedDocker,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
