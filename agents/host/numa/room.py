"""Judgements on how much memory a node can still give."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.byte_size import gib
from gapline.agents.host.numa.fact import NodeMemory, NumaMemory
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

AGENT_ID = "host.numa_memory"
CODES = (
    Code(
        code="numa.little_usable",
        title="A NUMA node can give little memory",
        meaning="Free memory and everything that can be given back are nearly used up on one node while another has "
        "plenty. A process there gets memory of the other node, which is farther from its CPUs and GPUs, or, if it is "
        "bound to the node, waits for reclaim.",
    ),
    Code(
        code="numa.little_free",
        title="Caches fill a NUMA node",
        meaning="Free memory alone says little: caches are given back. But the kernel takes pages from another node "
        "that has free ones before it shrinks a cache (vm.zone_reclaim_mode 0, Linux admin-guide/sysctl/vm.rst), so a "
        "process that is not bound gets remote memory. One that is bound to the node gets its memory there.",
    ),
)
_BENCHMARK = "numastat -n twice during a decode benchmark: numa_foreign of this node rises if it matters"


def room_findings(fact: NumaMemory, limits: Limits) -> Iterator[Finding]:
    """At most one for each node. With one node there is no other to fall back to, and nothing to say here."""
    nodes = [node for node in fact.with_cpus if node.total_kib]
    times = limits.number("times_more_elsewhere")
    for node in nodes:
        others = [one for one in nodes if one is not node]
        if not others:
            continue
        usable = fact.usable_kib(node)
        elsewhere = max(fact.usable_kib(one) for one in others)
        if usable < limits.number("least_usable_share") * node.total_kib:
            if elsewhere > times * usable:
                yield _little_usable(fact, node, limits.number("foreign_share"))
        elif _is_full(node, limits) and max(one.free_kib for one in others) > times * node.free_kib:
            yield _little_free(fact, node)


def _is_full(node: NodeMemory, limits: Limits) -> bool:
    return node.free_kib < limits.number("least_free_share") * node.total_kib


def _little_usable(fact: NumaMemory, node: NodeMemory, share: float) -> Finding:
    rare = node.foreign_share < share
    reason = f"medium → info: since boot another node gave {node.foreign_share:.2%} of what was asked of this one"
    return Finding(
        code="numa.little_usable",
        subject=f"node {node.number}",
        severity=Severity.INFO if rare else Severity.MEDIUM,
        base_severity=Severity.MEDIUM,
        severity_reason=reason if rare else "",
        title=f"NUMA node {node.number} can give {gib(fact.usable_kib(node))} of {gib(node.total_kib)}",
        observed=f"{_nodes(fact)}; node {node.number} holds {_held(node)}; since boot {node.foreign} of "
        f"{node.intended} pages asked of it came from elsewhere",
        expected="room on each node for what the processes of its GPUs still ask for",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=_evidence(fact, node),
        settled_by=_BENCHMARK,
        remedy=_remedy(
            fact,
            node,
            "See who holds it: numastat -p PID for large processes, grep -i huge "
            f"/sys/devices/system/node/node{node.number}/meminfo. Move what needs no GPU of this node to the other "
            "(numactl --membind, taskset), or release huge pages that nobody uses.",
        ),
    )


def _little_free(fact: NumaMemory, node: NodeMemory) -> Finding:
    return Finding(
        code="numa.little_free",
        subject=f"node {node.number}",
        severity=Severity.INFO,
        base_severity=Severity.MEDIUM,
        severity_reason=f"medium → info: caches fill it, and {gib(fact.usable_kib(node))} are usable",
        title=f"NUMA node {node.number} has {gib(node.free_kib)} free, {gib(fact.usable_kib(node))} usable",
        observed=f"{_nodes(fact)}; node {node.number} holds {_held(node)}",
        expected="an engine that is bound to its node, so that caches make room for it",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=_evidence(fact, node),
        settled_by=_BENCHMARK,
        remedy=_remedy(
            fact,
            node,
            f"Start the engine bound to the node of its GPUs: numactl --cpunodebind={node.number} "
            f"--membind={node.number} COMMAND. As a test only: sync; echo 1 > /proc/sys/vm/drop_caches empties "
            "the page cache of all nodes.",
        ),
    )


def _remedy(fact: NumaMemory, node: NodeMemory, now: str) -> Remedy:
    arc = fact.arc is not None and node.unnamed_kib > 0 and fact.arc.given_back_kib > 0
    cap = (
        " ZFS's cache can be capped: `options zfs zfs_arc_max=BYTES` in /etc/modprobe.d/zfs.conf and update-initramfs "
        "-u -k all; a value that is not above zfs_arc_min is ignored."
    )
    return Remedy(
        now=now,
        lasting="Write the binding into the engine's unit: NUMAPolicy=bind and NUMAMask= of systemd.exec(5), or "
        "numactl in ExecStart=." + (cap if arc else ""),
        undo="Take the binding away" + (", and the option of zfs." if arc else "."),
        cost="A bound process fails to get memory, or waits for it, when its node has none left; dropped caches are "
        "read from disk again.",
        risk=Risk.R1,
        restarts="the engine",
        verify_agent=AGENT_ID,
    )


def _evidence(fact: NumaMemory, node: NodeMemory) -> tuple[Evidence, ...]:
    own = (node.total, node.free, *node.cache, *node.counters)
    others = tuple(one.free for one in fact.with_cpus if one is not node)
    return (*own, *others, *(fact.arc.evidence if fact.arc else ()))


def _nodes(fact: NumaMemory) -> str:
    return "; ".join(
        f"node {node.number}: {gib(node.free_kib)} free, {gib(fact.usable_kib(node))} usable of {gib(node.total_kib)}"
        for node in fact.with_cpus
    )


def _held(node: NodeMemory) -> str:
    parts = (
        ("of processes", node.private_kib),
        ("shared", node.shared_kib),
        ("huge pages", node.huge_kib),
        ("page cache", node.cache_kib),
        ("that no counter names (ZFS's cache, pinned buffers)", node.unnamed_kib),
    )
    return ", ".join(f"{gib(kib)} {name}" for name, kib in parts)
