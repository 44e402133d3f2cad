"""Pair agent `pair.cpuset_locality`: has the container CPUs near the GPUs that it was given?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.container.cpuset_fact import Cpuset
from gapline.agents.container.engine import ContainerEngine
from gapline.agents.container.node_fact import DeviceNodes
from gapline.agents.engine.process import EngineGpu
from gapline.agents.host.numa.cpu_list import ranges
from gapline.orchestrator.model.agent import Code, Facts, Layer, PairAgent
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, Unknown, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

AGENT_ID = "pair.cpuset_locality"
_UNPLACED = Problem(
    kind=ProblemKind.UNSEEN,
    detail="the NUMA node of a GPU that the container has is not known",
    hint="Look at `cat /sys/bus/pci/devices/*/numa_node` on the host: firmware names no node where it says -1.",
)
_GPU = re.compile(r"/dev/nvidia([0-9]{1,4})")

CODES = (
    Code(
        code="cpuset.far_from_gpus",
        title="The container has no CPU on the NUMA node of a GPU that it has",
        meaning="Whatever its engine does, the threads that feed that GPU run on the other socket, and every command "
        "and copy crosses the link between the sockets.",
    ),
    Code(
        code="cpuset.memory_far_from_gpus",
        title="The container may not use memory of the node of a GPU that it has",
        meaning="cpuset.mems keeps its memory on other nodes, so buffers for that GPU lie behind the link between the "
        "sockets.",
    ),
)


def judge(facts: Facts, _: Limits) -> Outcome:
    """Only GPUs that the container has and whose node is known count."""
    cpuset, engine, nodes = facts.of(Cpuset), facts.of(ContainerEngine), facts.of(DeviceNodes)
    minors = {int(match[1]) for node in nodes.nodes if (match := _GPU.fullmatch(node.path))}
    mine = tuple(gpu for gpu in engine.gpus if gpu.minor in minors)
    with_cpus = [node for node in cpuset.nodes if node.cpus]
    if not minors:
        return NotApplicable("the container has no GPU node", cpuset)
    if len(with_cpus) == 1:
        return NotApplicable("the host has one NUMA node with CPUs: everything is local", cpuset)
    if not mine or any(gpu.node is None for gpu in mine):
        return Unknown(_UNPLACED, cpuset)
    return judged(cpuset, tuple(_findings(cpuset, mine)))


def _findings(cpuset: Cpuset, gpus: tuple[EngineGpu, ...]) -> Iterator[Finding]:
    cpus = set(cpuset.nodes_with_its_cpus())
    far = [gpu for gpu in gpus if gpu.node not in cpus]
    if far:
        yield _finding("cpuset.far_from_gpus", far, cpuset, "CPUs", ranges(cpuset.effective.numbers))
    memory = cpuset.effective_nodes
    away = [gpu for gpu in gpus if gpu.node not in memory.numbers and _has_memory(cpuset, gpu)]
    if away:
        yield _finding("cpuset.memory_far_from_gpus", away, cpuset, "memory nodes", ranges(memory.numbers))


def _has_memory(cpuset: Cpuset, gpu: EngineGpu) -> bool:
    """Nodes with CPUs have memory on all but broken machines; the container's own nodes say nothing about others."""
    return any(node.number == gpu.node and node.cpus for node in cpuset.nodes)


def _finding(code: str, gpus: list[EngineGpu], cpuset: Cpuset, what: str, has: str) -> Finding:
    local = {node.number: ranges(node.cpus) for node in cpuset.nodes}
    nodes = sorted({gpu.node for gpu in gpus if gpu.node is not None})
    wanted = ",".join(local.get(node, "") for node in nodes)
    key = "cpuset.cpus" if what == "CPUs" else "cpuset.mems"
    listed = cpuset.effective if what == "CPUs" else cpuset.effective_nodes
    value = wanted if what == "CPUs" else ranges(tuple(nodes))
    return Finding(
        code=code,
        subject=f"node {ranges(tuple(nodes))}",
        severity=Severity.MEDIUM,
        title=f"The container has {len(gpus)} GPUs on NUMA node {ranges(tuple(nodes))} and no {what} there",
        observed=f"{what} {has[:120]}",
        expected=f"also some of {value}",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(listed.evidence, *(gpu.evidence for gpu in gpus)),
        settled_by="copies between host and GPU, and the decode rate, with CPUs of that node",
        remedy=Remedy(
            now=f"Add a line `lxc.cgroup2.{key}` with {value} to the container's configuration (`:` in Proxmox VE's, "
            "`=` in LXC's), and restart the container.",
            lasting="The line is read at every start. With it Proxmox VE neither picks CPUs at random nor moves them.",
            undo="Remove the line.",
            cost="Those CPUs or that memory are no longer free for others alone; the old ones are no longer used.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


AGENT = PairAgent(
    id=AGENT_ID,
    title="CPUs of the container near its GPUs",
    layer=Layer.CONTAINER,
    needs=(Cpuset, ContainerEngine, DeviceNodes),
    judge=judge,
    codes=CODES,
)
