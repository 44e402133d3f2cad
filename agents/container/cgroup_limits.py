"""Agent `container.cgroup_limits`: what the host lets the container have, and whether it has run into that."""

from __future__ import annotations

from gapline.agents.container.cgroup_files import old_layout
from gapline.agents.container.cgroup_findings import CODES, findings
from gapline.agents.container.cgroup_reading import SOURCES, CgroupLimits, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "CgroupLimits"]


def judge(fact: CgroupLimits, limits: Limits) -> Outcome:
    """A limit by itself is nothing wrong; one that was run into is."""
    return judged(fact, tuple(findings(fact, limits)), () if fact.unified else old_layout("limits of containers"))


AGENT = Agent(
    id="container.cgroup_limits",
    title="Limits of the container's cgroup",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=CgroupLimits,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=CODES,
    limits=("full_share", "stalled_share", "throttled_share", "least_cpus", "tasks_share"),
)
