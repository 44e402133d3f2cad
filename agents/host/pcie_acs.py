"""Do bridges above the GPUs send data between them on a detour through the root complex?"""

from __future__ import annotations

from gapline.agents.host.acs.fact import PeerPaths
from gapline.agents.host.acs.findings import CODES, redirect_findings
from gapline.agents.host.acs.reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "PeerPaths"]


def judge(fact: PeerPaths, _limits: Limits) -> Outcome:
    """How the GPUs reach each other matters only where a port redirects."""
    findings = tuple(redirect_findings(fact))
    return judged(fact, findings, fact.unseen if findings else ())


AGENT = Agent(
    id="host.pcie_acs",
    title="ACS redirect above the GPUs",
    layer=Layer.COMMUNICATION,
    scope=Scope.HOST,
    fact=PeerPaths,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=CODES,
)
