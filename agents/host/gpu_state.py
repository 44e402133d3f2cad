"""Are the GPUs healthy, and does anything hold their speed back?"""

from __future__ import annotations

from gapline.agents.host.smi.fact import GpuStates
from gapline.agents.host.smi.health import CODES as HEALTH_CODES
from gapline.agents.host.smi.health import health_findings
from gapline.agents.host.smi.mode import CODES as MODE_CODES
from gapline.agents.host.smi.mode import mode_findings
from gapline.agents.host.smi.reading import SOURCES, read
from gapline.agents.host.smi.speed import CODES as SPEED_CODES
from gapline.agents.host.smi.speed import speed_findings
from gapline.agents.host.smi.traits import traits
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "GpuStates"]


def judge(fact: GpuStates, limits: Limits) -> Outcome:
    """What an idle GPU shows of clocks and link is not judged; `host.pcie` judges links."""
    findings = (*health_findings(fact), *speed_findings(fact, limits), *mode_findings(fact))
    return judged(fact, findings, fact.unseen)


AGENT = Agent(
    id="host.gpu_state",
    title="State of the GPUs",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=GpuStates,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(*HEALTH_CODES, *SPEED_CODES, *MODE_CODES),
    limits=(
        "loaded_percent",
        "working_states",
        "least_share_of_default_power",
        "least_share_of_memory_clock",
        "slowed_down_seconds",
        "least_margin_c",
    ),
    traits=traits,
)
