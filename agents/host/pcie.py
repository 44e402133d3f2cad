"""Has each GPU all the PCI Express that its slot and its ports can give?"""

from __future__ import annotations

from gapline.agents.host.pci_express.fact import PciExpressPaths
from gapline.agents.host.pci_express.link_limits import CODES as LIMIT_CODES
from gapline.agents.host.pci_express.link_limits import limit_findings
from gapline.agents.host.pci_express.links import CODES as LINK_CODES
from gapline.agents.host.pci_express.links import link_findings, unseen_links
from gapline.agents.host.pci_express.packets import CODES as PACKET_CODES
from gapline.agents.host.pci_express.packets import packet_findings
from gapline.agents.host.pci_express.reading import SOURCES, read
from gapline.agents.host.pci_express.traits import traits
from gapline.agents.host.pci_express.window import CODES as WINDOW_CODES
from gapline.agents.host.pci_express.window import window_findings
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged

__all__ = ["AGENT", "PciExpressPaths"]


def judge(fact: PciExpressPaths, limits: Limits) -> Outcome:
    """Links need no root; what the configuration space would have told is unseen without it."""
    links = (*link_findings(fact, limits), *limit_findings(fact))
    findings = (*links, *window_findings(fact, limits), *packet_findings(fact, limits))
    return judged(fact, findings, (*fact.unseen, *unseen_links(fact)))


AGENT = Agent(
    id="host.pcie",
    title="PCI Express of the GPUs",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=PciExpressPaths,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(*LINK_CODES, *LIMIT_CODES, *WINDOW_CODES, *PACKET_CODES),
    limits=("working_states", "working_percent", "small_window_mib", "read_request_bytes"),
    traits=traits,
)
