"""Does the kernel move memory between NUMA nodes behind the back of a program that is bound to one?"""

from __future__ import annotations

import re

from gapline.orchestrator.model.agent import Agent, Code, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import NotApplicableError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, NotApplicable, Outcome, judged
from gapline.orchestrator.model.source import File, Glob
from gapline.orchestrator.model.trait import Trait

SWITCH = "/proc/sys/kernel/numa_balancing"
NORMAL = 1  # bit 0 of the switch; bit 1 is promotion between memory tiers, which binding does not replace


class MemoryNode(Fact):
    """A NUMA node. One without CPUs is memory of a GPU or a CXL device."""

    number: int
    cpus: str  # "0-63,128-191"; empty when it has none
    evidence: Evidence


class NumaBalancing(Fact):
    """The switch and the nodes it works between."""

    value: int  # 0 off, 1 on, 2 memory tiering only, 3 both
    nodes: tuple[MemoryNode, ...]
    evidence: Evidence

    @property
    def between(self) -> tuple[MemoryNode, ...]:
        """The nodes that have CPUs."""
        return tuple(node for node in self.nodes if node.cpus)


def parse(captures: Captures) -> NumaBalancing:
    """The switch as a number, the nodes by their CPU lists."""
    switch, nodes = captures.have("switch"), captures.have("nodes")
    if switch is None:
        raise NotApplicableError(f"this kernel has no automatic NUMA balancing: {SWITCH} does not exist")
    if nodes is None:
        raise NotApplicableError("this kernel shows no NUMA nodes")
    line = switch.first()
    if re.fullmatch(r"[0-3]", line.text) is None:
        raise ParseError(line.evidence, "a number from 0 to 3")
    found = tuple(_node(path, lines[0].text, lines[0].evidence) for path, lines in nodes.files().items())
    if not found:
        raise ParseError(nodes.first().evidence, "the CPUs of a NUMA node")
    return NumaBalancing(value=int(line.text), nodes=found, evidence=line.evidence)


def _node(path: str, cpus: str, evidence: Evidence) -> MemoryNode:
    number = re.search(r"/node([0-9]{1,6})/", path, re.ASCII)
    if number is None or re.fullmatch(r"[0-9,-]{0,4000}", cpus, re.ASCII) is None:
        raise ParseError(evidence, "a list of CPUs such as 0-63,128-191")
    return MemoryNode(number=int(number[1]), cpus=cpus, evidence=evidence)


def judge(fact: NumaBalancing, _limits: Limits) -> Outcome:
    """Found when it is on and there are two nodes with CPUs to move between."""
    if len(fact.between) < 2:  # noqa: PLR2004 - it takes two
        return NotApplicable("only one NUMA node has CPUs, so there is nothing to balance between", fact)
    return judged(fact, (_on(fact),) if fact.value & NORMAL else ())


def _on(fact: NumaBalancing) -> Finding:
    nodes = ", ".join(f"{node.number} (CPUs {node.cpus})" for node in fact.between)
    return Finding(
        code="numa.balancing_on",
        subject="kernel.numa_balancing",
        severity=Severity.MEDIUM,
        title="Automatic NUMA balancing is on",
        observed=f"kernel.numa_balancing = {fact.value} between nodes {nodes}",
        expected="0 where the inference process is bound to its GPUs' node",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(fact.evidence, *(node.evidence for node in fact.between)),
        settled_by="a decode benchmark with the process bound, alternating kernel.numa_balancing 1 and 0",
        remedy=Remedy(
            now="sysctl -w kernel.numa_balancing=0",
            commands=("sysctl -w kernel.numa_balancing=0",),
            lasting="echo kernel.numa_balancing=0 > /etc/sysctl.d/90-numa-balancing.conf && sysctl --system; and bind "
            "the engine to the node of its GPUs: numactl --cpunodebind=N --membind=N",
            undo=f"sysctl -w kernel.numa_balancing={fact.value}; rm /etc/sysctl.d/90-numa-balancing.conf",
            cost="Programs on this host that are not bound lose the kernel's help and may become slower; so does the "
            "engine itself as long as it is not bound.",
            risk=Risk.R1,
            restarts="nothing",
            verify_agent="host.numa_balancing",
        ),
    )


def traits(fact: NumaBalancing) -> tuple[Trait, ...]:
    """The switch, where there are nodes to balance between."""
    if len(fact.between) < 2:  # noqa: PLR2004 - between one and itself
        return ()
    return (Trait(name="NUMA balancing", value=str(fact.value), evidence=fact.evidence),)


AGENT = Agent(
    id="host.numa_balancing",
    title="NUMA balancing",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=NumaBalancing,
    sources={"switch": File(SWITCH), "nodes": Glob("/sys/devices/system/node/node*/cpulist")},
    parse=parse,
    judge=judge,
    codes=(
        Code(
            code="numa.balancing_on",
            title="Automatic NUMA balancing is on",
            meaning="The kernel unmaps pages to learn who uses them and moves them between nodes. Its documentation "
            "advises to switch this off for workloads that are bound to nodes (Documentation/admin-guide/sysctl/"
            "kernel.rst); what it costs a decode step here is not measured.",
        ),
    ),
    traits=traits,
)
