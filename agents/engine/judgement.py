"""All judgements on an engine, under the names of the agent that asks."""

from __future__ import annotations

from gapline.agents.engine import log_findings, placement_findings, setting_findings
from gapline.agents.engine.fact import Engine
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.limit import Limits

LIMITS = placement_findings.LIMITS


def codes(area: str) -> tuple[Code, ...]:
    """Every code below `area`."""
    return (*setting_findings.codes(area), *placement_findings.codes(area), *log_findings.codes(area))


def findings(engine: Engine, limits: Limits, area: str, agent: str) -> tuple[Finding, ...]:
    """Options and variables, placement, and what logs say; each code and subject once."""
    found = (
        *setting_findings.setting_findings(engine, area, agent),
        *placement_findings.placement_findings(engine, limits, area, agent),
        *log_findings.log_findings(engine, area, agent),
    )
    return tuple({(finding.code, finding.subject): finding for finding in reversed(found)}.values())[::-1]
