"""Does an IOMMU translate the addresses that GPUs use?"""

from __future__ import annotations

from gapline.agents.host.translation.fact import DmaTranslation
from gapline.agents.host.translation.findings import CODES, mode_unseen, translation_findings
from gapline.agents.host.translation.reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "DmaTranslation"]


def judge(fact: DmaTranslation, _limits: Limits) -> Outcome:
    """Passthrough and no IOMMU at all are both fine."""
    return judged(fact, tuple(translation_findings(fact)), mode_unseen(fact))


AGENT = Agent(
    id="host.iommu",
    title="IOMMU",
    layer=Layer.COMMUNICATION,
    scope=Scope.HOST,
    fact=DmaTranslation,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=CODES,
)
