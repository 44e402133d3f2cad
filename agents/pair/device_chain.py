"""Pair agent `pair.device_chain`: can the container use the GPU nodes it was given, today and after the next boot?"""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.configuration_fact import Configuration
from gapline.agents.container.node_fact import DeviceNodes
from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.agents.pair import chain_findings, rule_findings
from gapline.agents.pair.chain_link import UVM, DeviceChain, chain, running_policy
from gapline.orchestrator.model.agent import Facts, Layer, PairAgent
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

AGENT_ID = "pair.device_chain"


def judge(facts: Facts, _: Limits) -> Outcome:
    """The access test decides; where there is none, the rules do."""
    configuration, driver = facts.of(Configuration), facts.of(NvidiaDriver)
    nodes = facts.get(DeviceNodes)
    if driver.loaded is None:
        return NotApplicable("the host's NVIDIA kernel module is not loaded; host.nvidia_driver says why that matters")
    if not configuration.gpu_evidence and not (nodes and nodes.nodes):
        return NotApplicable("the container was given no NVIDIA node: none is in it and its configuration names none")
    links = chain(configuration, driver, nodes)
    policy = running_policy(configuration, driver)
    findings = (
        *chain_findings.findings(links, configuration, driver),
        *rule_findings.findings(links, configuration, driver, nodes, policy),
    )
    return judged(links, findings, tuple(_unseen(links)))


def _unseen(links: DeviceChain) -> Iterator[Problem]:
    for link in links.links:
        if link.major is None:
            why = "nvidia-uvm is not loaded" if link.path == UVM else "the driver has no such major"
            yield Problem(
                kind=ProblemKind.UNSEEN,
                detail=f"{link.path}: {why} on the host, so there is nothing to set it against",
                hint="Repair what host.nvidia_driver found, then run again: gapline rerun pair.device_chain",
            )
        elif not link.tried and link.allowed is None and not (links.running and link.inside is None):
            yield Problem(
                kind=ProblemKind.UNSEEN,
                detail=f"{link.path}: not tried inside the container, and its rules were not all seen",
                hint="Start the container, with dash or bash in it, and run again: gapline rerun "
                "container.device_nodes",
            )
    if not links.running:
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail="the nodes inside the container were not seen; what is said about it follows from its configuration",
            hint="Start the container and run again: gapline rerun container.device_nodes",
        )


AGENT = PairAgent(
    id=AGENT_ID,
    title="GPU nodes from the driver to the container",
    layer=Layer.CONTAINER,
    needs=(Configuration, NvidiaDriver),
    wants=(DeviceNodes,),
    judge=judge,
    codes=(*chain_findings.CODES, *rule_findings.CODES),
)
