"""Agent `container.configuration`: what the container's configuration says, and whether it can mean that."""

from __future__ import annotations

from gapline.agents.container import configuration_idmap, configuration_nodes, configuration_rules, configuration_start
from gapline.agents.container.configuration_fact import Configuration
from gapline.agents.container.configuration_reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "SOURCES", "Configuration"]


def judge(fact: Configuration, _: Limits) -> Outcome:
    """By the file alone; what needs the host's numbers is `pair.device_chain`'s."""
    findings = (
        *configuration_start.findings(fact),
        *configuration_idmap.findings(fact),
        *configuration_rules.findings(fact),
    )
    return judged(fact, findings, (*fact.unseen, *configuration_rules.unread(fact)))


AGENT = Agent(
    id="container.configuration",
    title="Container configuration",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=Configuration,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(
        *configuration_start.CODES,
        *configuration_idmap.CODES,
        *configuration_rules.CODES,
        *configuration_nodes.CODES,
    ),
)
