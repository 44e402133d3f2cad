"""Which services tune this host, and what do they undo of a repair?"""

from __future__ import annotations

from gapline.agents.host.tuning.fact import Tuning
from gapline.agents.host.tuning.findings import CODES, findings
from gapline.agents.host.tuning.reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "Tuning"]


def judge(fact: Tuning, limits: Limits) -> Outcome:
    """No service is fine as well: what is set by hand then stays."""
    return judged(fact, tuple(findings(fact, limits)))


AGENT = Agent(
    id="host.tuning_daemons",
    title="Tuning services",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=Tuning,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=CODES,
    limits=("governors", "preferences", "near_preferences"),
)
