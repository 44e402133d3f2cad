"""Judgements on which nodes there are."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.byte_size import gib
from gapline.agents.host.numa.fact import NodeMemory, NumaMemory
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

AGENT_ID = "host.numa_memory"
CODES = (
    Code(
        code="numa.one_node",
        title="Several processors form one NUMA node",
        meaning="Firmware interleaves all memory between the processors (node interleaving, NPS0), or the kernel was "
        "told to ignore the nodes. Every second access then goes to the other processor, and nothing can be bound "
        "near a GPU.",
    ),
    Code(
        code="numa.node_without_memory",
        title="CPUs without memory of their own",
        meaning="A NUMA node has CPUs and no memory: every access of these CPUs, and of the GPUs at them, goes to "
        "another node. Mostly memory modules are missing or failed to train.",
    ),
    Code(
        code="numa.uneven_memory",
        title="NUMA nodes differ in size",
        meaning="Processors with different amounts of memory mostly have different numbers of modules, and so "
        "different bandwidth; a module that failed to train looks the same.",
    ),
    Code(
        code="numa.split_sockets",
        title="A processor is split into several NUMA nodes",
        meaning="Firmware divides a processor (NPS2, NPS4, sub-NUMA clusters, L3 as NUMA). What is bound to a GPU's "
        "node then gets a part of the processor's cores and memory channels.",
    ),
)
_MODULES = "Look which modules the firmware sees: dmidecode -t 17 | grep -E '(Size|Locator):'."
_BANDWIDTH = "a benchmark of pinned memory to each GPU, bound to each node in turn"


def shape_findings(fact: NumaMemory, limits: Limits) -> Iterator[Finding]:
    """What a hypervisor shows as sockets and nodes is its own invention: mostly no fault of this machine."""
    for node in fact.with_cpus:
        if not node.total_kib and any(one.total_kib for one in fact.nodes):
            yield _without_memory(fact, node)
    if fact.virtual:
        return
    if len(fact.with_cpus) == 1 and fact.packages > 1:
        yield _one_node(fact)
    if 0 < fact.packages < len(fact.with_cpus):
        yield _split(fact)
    sized = sorted((node for node in fact.with_cpus if node.total_kib), key=lambda node: node.total_kib)
    least = limits.number("least_share_of_largest") * sized[-1].total_kib if sized else 0
    if sized and fact.cut is None and sized[0].total_kib < least:
        yield _uneven(sized)


def _one_node(fact: NumaMemory) -> Finding:
    off = fact.switched_off
    asked = "; numa=off is on the kernel's command line" if off else ""
    return Finding(
        code="numa.one_node",
        subject="nodes",
        severity=Severity.MEDIUM,
        title=f"{fact.packages} processors, and a single NUMA node",
        observed=f"CPUs {fact.with_cpus[0].cpus} of {fact.packages} processors in one node{asked}",
        expected="at least one node for each processor",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(*((off,) if off else ()), fact.with_cpus[0].cpus_evidence, *fact.package_evidence),
        settled_by=_BANDWIDTH,
        remedy=_remedy(
            "Take numa=off out of the kernel's command line, then reboot."
            if off
            else "In the firmware's setup: 'NUMA nodes per socket' to NPS1 (AMD), or 'Node interleaving' to disabled "
            "(Intel), then reboot.",
            "Go back to the old value.",
        ),
    )


def _without_memory(fact: NumaMemory, node: NodeMemory) -> Finding:
    reason = "medium → info: the hypervisor laid out these nodes, and where their memory really lies is not shown"
    return Finding(
        code="numa.node_without_memory",
        subject=f"node {node.number}",
        severity=Severity.INFO if fact.virtual else Severity.MEDIUM,
        base_severity=Severity.MEDIUM,
        severity_reason=reason if fact.virtual else "",
        title=f"NUMA node {node.number} has CPUs {node.cpus} and no memory",
        observed=", ".join(f"node {one.number}: {gib(one.total_kib)}" for one in fact.with_cpus),
        expected="memory at every processor",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(node.cpus_evidence, node.total, *(one.total for one in fact.with_cpus if one is not node)),
        settled_by=_BANDWIDTH,
        remedy=_remedy(
            f"{_MODULES} Move or add modules so that every processor has the same, or go back to one node per "
            "processor in the firmware's setup.",
            "Put the modules back.",
        ),
    )


def _uneven(sized: list[NodeMemory]) -> Finding:
    return Finding(
        code="numa.uneven_memory",
        subject="nodes",
        severity=Severity.LOW,
        title=f"NUMA node {sized[0].number} has {gib(sized[0].total_kib)}, "
        f"node {sized[-1].number} has {gib(sized[-1].total_kib)}",
        observed=", ".join(f"node {node.number}: {gib(node.total_kib)}" for node in sized),
        expected="the same on every node",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(node.total for node in sized),
        settled_by=_BANDWIDTH,
        remedy=_remedy(
            f"{_MODULES} Reseat one that is plugged and not listed; add what one processor has less than the other.",
            "Put the modules back.",
        ),
    )


def _split(fact: NumaMemory) -> Finding:
    return Finding(
        code="numa.split_sockets",
        subject="nodes",
        severity=Severity.INFO,
        title=f"{fact.packages} processor(s) are split into {len(fact.with_cpus)} NUMA nodes",
        observed="; ".join(f"node {node.number}: CPUs {node.cpus}, {gib(node.total_kib)}" for node in fact.with_cpus),
        expected="known to whoever binds processes: near a GPU are all nodes of its processor",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(*fact.package_evidence, *(node.cpus_evidence for node in fact.with_cpus)),
        settled_by=_BANDWIDTH,
        remedy=_remedy(
            "Nothing has to be done. For engines that keep weights or caches in host memory one node per processor "
            "gives one process the most bandwidth: 'NUMA nodes per socket' to NPS1, or sub-NUMA clusters off.",
            "Go back to the old value.",
        ),
    )


def _remedy(now: str, undo: str) -> Remedy:
    return Remedy(
        now=now,
        lasting="It stays; note it beside the machine's other firmware settings, which an update can reset.",
        undo=undo,
        cost="Downtime of the whole host.",
        risk=Risk.R3,
        restarts="the host",
        verify_agent=AGENT_ID,
    )
