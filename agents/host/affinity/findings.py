"""Judgements on where GPUs are and who serves their interrupts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.affinity.fact import GpuAffinity, GpuPlace, Vector
from gapline.agents.host.numa.cpu_list import ranges
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

_AGENT = "host.gpu_affinity"
CODES = (
    Code(
        code="affinity.node_unknown",
        title="The firmware does not tell near which CPUs a GPU is",
        meaning="numa_node is -1 on a host with several NUMA nodes, so the kernel takes all CPUs for near. Engines, "
        "NCCL and nvidia-smi topo -m read the same, and what they bind by it is bound by chance.",
    ),
    Code(
        code="affinity.remote_interrupts",
        title="Interrupts of a GPU are served on another processor",
        meaning="The driver's handler then reaches the GPU and its memory over the link between the processors. "
        "Without interference Linux places vectors on near CPUs (kernel/irq, arch/x86/kernel/apic/vector.c).",
    ),
    Code(
        code="affinity.one_cpu",
        title="One CPU serves the interrupts of several GPUs",
        meaning="Handlers of one CPU run one after the other, and whatever else runs there waits for them. It comes "
        "from an affinity set by hand or for all interrupts together (irqaffinity=, a tuning script).",
    ),
)
_IN_A_GUEST = "low → info: a hypervisor puts passed-through devices on a bus without a node"
_BALANCER = (
    " irqbalance is active and moves them: IRQBALANCE_ARGS=--banmod=nvidia in /etc/default/irqbalance, or stop it."
)
_LATENCY = "a decode benchmark before and after, with the engine bound to the GPUs' CPUs"


_Rows = Sequence[tuple[GpuPlace, Vector]]


def affinity_findings(fact: GpuAffinity, limits: Limits) -> Iterator[Finding]:
    """At most one of each for all GPUs."""
    unknown = [gpu for gpu in fact.gpus if gpu.node is None]
    if unknown and fact.nodes_with_cpus > 1:
        yield _node_unknown(fact, unknown)
    served, far = [(gpu, vector) for gpu in fact.gpus for vector in gpu.used], limits.number("remote_distance")
    remote = [(gpu, vector) for gpu, vector in served if _is_remote(gpu.near(far), vector)]
    if remote:
        yield _remote(fact, remote, far)
    if _is_crowded(served) and fact.cpus >= limits.number("cpus_for_each_gpu") * len(fact.gpus):
        yield _one_cpu(fact, served, far)


def _is_remote(near: Sequence[int], vector: Vector) -> bool:
    return bool(near) and not set(vector.served_by) & set(near)


def _is_crowded(served: _Rows) -> bool:
    """Whether several GPUs have one CPU in common, and no other."""
    cpus = {vector.served_by for _, vector in served}
    return len({gpu.bus_id for gpu, _ in served}) > 1 and len(cpus) == 1 and len(min(cpus)) == 1


def _node_unknown(fact: GpuAffinity, gpus: Sequence[GpuPlace]) -> Finding:
    guest = fact.virtual is not None
    return Finding(
        code="affinity.node_unknown",
        subject="GPUs",
        severity=Severity.INFO if guest else Severity.LOW,
        base_severity=Severity.LOW,
        severity_reason=_IN_A_GUEST if guest else "",
        title=f"{len(gpus)} GPU(s) have no NUMA node, on a host with {fact.nodes_with_cpus}",
        observed=f"numa_node -1: {', '.join(gpu.bus_id for gpu in gpus)}",
        expected="the node of the processor that the GPU hangs on",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(gpu.evidence for gpu in gpus),
        settled_by="a benchmark of pinned memory to each GPU, bound to each node in turn: the faster one is near",
        remedy=Remedy(
            now="Find the near node with the benchmark, and bind the engine to it by hand (numactl --cpunodebind=N "
            "--membind=N). The kernel can be told, too: echo N > /sys/bus/pci/devices/BUS_ID/numa_node; that "
            "taints it.",
            lasting="A firmware update or its setting for ACPI proximity (SRAT, _PXM). In a virtual machine: the GPU "
            "on a pxb-pcie bridge that has the node.",
            undo="echo -1 > /sys/bus/pci/devices/BUS_ID/numa_node; take the binding away.",
            cost="None beyond that of binding.",
            risk=Risk.R1,
            restarts="the engine",
            verify_agent=_AGENT,
        ),
    )


def _remote(fact: GpuAffinity, remote: _Rows, far: float) -> Finding:
    gpus = dict.fromkeys(gpu.bus_id for gpu, _ in remote)
    return Finding(
        code="affinity.remote_interrupts",
        subject="GPUs",
        severity=Severity.LOW,
        title=f"Interrupts of {len(gpus)} GPU(s) are served on another processor",
        observed="; ".join(
            f"{gpu.bus_id} (node {gpu.node}): vector {vector.number} on CPU {_cpus(vector)}" for gpu, vector in remote
        ),
        expected="CPUs of the GPU's own processor",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(line for gpu, vector in remote for line in (gpu.evidence, *vector.evidence)),
        settled_by=_LATENCY,
        remedy=_move(fact, remote, far),
    )


def _one_cpu(fact: GpuAffinity, served: _Rows, far: float) -> Finding:
    gpus = dict.fromkeys(gpu.bus_id for gpu, _ in served)
    return Finding(
        code="affinity.one_cpu",
        subject="GPUs",
        severity=Severity.LOW,
        title=f"CPU {_cpus(served[0][1])} alone serves the interrupts of {len(gpus)} GPUs",
        observed="; ".join(
            f"{gpu.bus_id}: vector {vector.number}, {vector.count} since boot" for gpu, vector in served
        ),
        expected="several CPUs, each near its GPUs",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(line for _, vector in served for line in vector.evidence),
        settled_by=_LATENCY,
        remedy=_move(fact, served, far),
    )


def _move(fact: GpuAffinity, vectors: _Rows, far: float) -> Remedy:
    moves = "; ".join(f"echo {_target(gpu, far)} > {_file(vector)}" for gpu, vector in vectors)
    back = "; ".join(f"echo {vector.allowed} > {_file(vector)}" for _, vector in vectors if vector.allowed)
    balancer = _BALANCER if fact.balanced else ""
    return Remedy(
        now=moves,
        lasting="First look what placed them: irqaffinity= on the kernel's command line, a tuning script. Numbers "
        "change, and vectors are made anew when the driver takes a GPU into use, so a oneshot unit after "
        f"nvidia-persistenced reads them from /sys/bus/pci/devices/BUS_ID/msi_irqs.{balancer}",
        undo=back or "Put the old list into the same files.",
        cost="None.",
        risk=Risk.R1,
        restarts="nothing",
        verify_agent=_AGENT,
    )


def _target(gpu: GpuPlace, far: float) -> str:
    return ranges(gpu.near(far)) or gpu.local_cpus or "CPUS"


def _file(vector: Vector) -> str:
    return f"/proc/irq/{vector.number}/smp_affinity_list"


def _cpus(vector: Vector) -> str:
    return ",".join(map(str, vector.served_by))
