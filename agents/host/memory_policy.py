"""How is the memory fitted, and what is the kernel told to do with it?"""

from __future__ import annotations

from gapline.agents.host.memory.fact import MemoryPolicy
from gapline.agents.host.memory.hardware import CODES as HARDWARE_CODES
from gapline.agents.host.memory.hardware import channels_unseen, hardware_findings
from gapline.agents.host.memory.reading import SOURCES, read
from gapline.agents.host.memory.rules import CODES as RULE_CODES
from gapline.agents.host.memory.rules import rule_findings
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "MemoryPolicy"]


def judge(fact: MemoryPolicy, limits: Limits) -> Outcome:
    """Rules first; modules where they were seen."""
    findings = (*rule_findings(fact, limits), *hardware_findings(fact, limits))
    return judged(fact, findings, (*fact.unseen, *channels_unseen(fact)))


AGENT = Agent(
    id="host.memory_policy",
    title="Memory modules and memory policy",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=MemoryPolicy,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(*RULE_CODES, *HARDWARE_CODES),
    limits=("unused_share", "swapped_share", "least_share_of_rated"),
)
