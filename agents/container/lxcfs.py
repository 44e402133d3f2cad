"""Agent `container.lxcfs`: is lxcfs there, alive, and of one mind about the container's CPUs?"""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.lxcfs_findings import AGENT_ID, CODES, absent, dead, inconsistent
from gapline.agents.container.lxcfs_reading import SOURCES, Lxcfs, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

__all__ = ["AGENT", "Lxcfs"]


def judge(fact: Lxcfs, _: Limits) -> Outcome:
    """Alive first: what cannot be read cannot be compared."""
    findings = tuple(dead(fact)) or (*inconsistent(fact), *absent(fact))
    return judged(fact, findings, tuple(_unseen(fact)))


def _unseen(fact: Lxcfs) -> Iterator[Problem]:
    if not fact.mounted and not fact.limits_seen:
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail="lxcfs is not mounted, and whether the container has limits was not seen",
            hint="Log in as root: the container's cgroup must be known.",
        )


AGENT = Agent(
    id=AGENT_ID,
    title="lxcfs",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=Lxcfs,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=CODES,
)
