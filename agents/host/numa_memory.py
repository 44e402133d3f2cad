"""Which NUMA nodes are there, and how much memory can each still give?"""

from __future__ import annotations

from gapline.agents.host.numa.fact import NumaMemory
from gapline.agents.host.numa.reading import SOURCES, read
from gapline.agents.host.numa.room import CODES as ROOM_CODES
from gapline.agents.host.numa.room import room_findings
from gapline.agents.host.numa.shape import CODES as SHAPE_CODES
from gapline.agents.host.numa.shape import shape_findings
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "NumaMemory"]


def judge(fact: NumaMemory, limits: Limits) -> Outcome:
    """Only nodes with CPUs count: the others are memory of devices."""
    return judged(fact, (*shape_findings(fact, limits), *room_findings(fact, limits)))


AGENT = Agent(
    id="host.numa_memory",
    title="NUMA nodes and their memory",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=NumaMemory,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(*SHAPE_CODES, *ROOM_CODES),
    limits=(
        "least_usable_share",
        "times_more_elsewhere",
        "least_free_share",
        "foreign_share",
        "least_share_of_largest",
    ),
)
