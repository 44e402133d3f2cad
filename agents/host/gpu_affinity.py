"""Which CPUs are near each GPU, and which serve its interrupts?"""

from __future__ import annotations

from gapline.agents.host.affinity.fact import GpuAffinity
from gapline.agents.host.affinity.findings import CODES, affinity_findings
from gapline.agents.host.affinity.reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "GpuAffinity"]


def judge(fact: GpuAffinity, limits: Limits) -> Outcome:
    """Only vectors that have fired count."""
    return judged(fact, tuple(affinity_findings(fact, limits)))


AGENT = Agent(
    id="host.gpu_affinity",
    title="CPUs and interrupts of the GPUs",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=GpuAffinity,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=CODES,
    limits=("remote_distance", "cpus_for_each_gpu"),
)
