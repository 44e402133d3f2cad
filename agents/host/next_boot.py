"""Will the GPUs be there after the next reboot?"""

from __future__ import annotations

from gapline.agents.host.reboot.driver_findings import CODES as DRIVER_CODES
from gapline.agents.host.reboot.driver_findings import driver_findings
from gapline.agents.host.reboot.fact import NextBoot
from gapline.agents.host.reboot.module_findings import CODES as MODULE_CODES
from gapline.agents.host.reboot.module_findings import module_findings, unseen_modules
from gapline.agents.host.reboot.node_findings import CODES as NODE_CODES
from gapline.agents.host.reboot.node_findings import node_findings, unseen_makers
from gapline.agents.host.reboot.reading import read
from gapline.agents.host.reboot.script import SOURCES
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "NextBoot"]


def judge(fact: NextBoot, _limits: Limits) -> Outcome:
    """Where the next kernel is not known, it matters only if not all installed kernels have a module."""
    findings = (*module_findings(fact), *driver_findings(fact), *node_findings(fact))
    return judged(fact, findings, (*unseen_modules(fact), *unseen_makers(fact)))


AGENT = Agent(
    id="host.next_boot",
    title="GPUs after the next reboot",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=NextBoot,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(*MODULE_CODES, *DRIVER_CODES, *NODE_CODES),
)
