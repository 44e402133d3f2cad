"""How busy was the host while we looked, and does it wait for memory or for its hypervisor?"""

from __future__ import annotations

from gapline.agents.host.activity import ACTIVITY
from gapline.agents.host.cpu.processor import CPUINFO
from gapline.agents.host.load_findings import CODES, load_findings
from gapline.agents.host.load_reading import Load, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

__all__ = ["AGENT", "Load"]


def judge(fact: Load, limits: Limits) -> Outcome:
    """Mostly information, for whoever reads a measurement of the same minutes."""
    return judged(fact, tuple(load_findings(fact, limits)), _unseen(fact))


def _unseen(fact: Load) -> tuple[Problem, ...]:
    if fact.stalls:
        return ()
    detail = "this kernel measures no pressure stalls: /proc/pressure does not exist"
    return (Problem(kind=ProblemKind.MISSING, detail=detail, hint="Boot with psi=1."),)


AGENT = Agent(
    id="host.load",
    title="Load while we looked",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=Load,
    sources={"activity": ACTIVITY, "cpuinfo": CPUINFO},
    parse=read,
    judge=judge,
    codes=CODES,
    limits=("busy_share", "steal_share", "memory_stall_share", "io_stall_share"),
)
