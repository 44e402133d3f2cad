"""Judgements on GPUs given to a container and GPUs seen in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.agents.container.engine import ContainerEngine
from gapline.agents.container.gpus import ShownGpu, ShownGpus
from gapline.agents.container.node_fact import DeviceNodes
from gapline.agents.device_node import DeviceNode
from gapline.agents.host.nvidia.fact import DriverGpu
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

Given = Mapping[int, tuple[DeviceNode, DriverGpu]]
"""What the container was given, by minor."""

AGENT_ID = "pair.gpus_seen"
_CAPABILITY = re.compile(r"/dev/nvidia-caps/nvidia-cap([0-9]{1,5})")
_INSTANCE = 3  # nvidia-cap1 and 2 are for configuring and watching MIG; instances follow (NVIDIA MIG User Guide)

CODES = (
    Code(
        code="gpus_seen.missing",
        title="A GPU that the container was given is not seen in it",
        meaning="Its node is there, and the driver's library does not list it: the node is denied, or the GPU is lost "
        "or "
        "excluded. An engine that wants all of them does not start; one that takes what it finds runs on fewer.",
    ),
    Code(
        code="gpus_seen.mig_without_nodes",
        title="A GPU is cut into MIG instances, and the container has no node of an instance",
        meaning="With MIG on, CUDA uses instances only, and each has two nodes below /dev/nvidia-caps. Without them "
        "nvidia-smi lists the GPU and CUDA finds no device.",
    ),
    Code(
        code="gpus_seen.unused",
        title="The engine uses fewer GPUs than the container was given",
        meaning="For information: memory and bandwidth of the others lie idle, unless something else is meant to use "
        "them.",
    ),
)


def missing(given: Given, shown: ShownGpus) -> Iterator[Finding]:
    """GPUs that were given and are not shown."""
    seen = {gpu.bus_id for gpu in shown.gpus}
    for minor, (node, gpu) in sorted(given.items()):
        if gpu.bus_id.lower() not in seen:
            yield Finding(
                code="gpus_seen.missing",
                subject=gpu.bus_id,
                severity=Severity.HIGH,
                title=f"/dev/nvidia{minor} is in the container, and its GPU {gpu.bus_id} is not seen there",
                observed=f"nvidia-smi in the container lists {len(seen)} of {len(given)} GPUs",
                expected=f"{gpu.bus_id} ({gpu.model})",
                effect=Effect.BREAKS,
                confidence=Confidence.VERIFIED,
                evidence=(node.evidence, gpu.evidence, shown.gpus[0].evidence),
                remedy=_remedy(
                    "See pair.device_chain for its node and rules, and host.kernel_log and host.gpu_state for the GPU "
                    "itself; they name the repair.",
                    "As those agents say.",
                ),
            )


def mig(nodes: DeviceNodes, shown: ShownGpus) -> Iterator[Finding]:
    """GPUs cut into instances of which none is there."""
    cut = [gpu for gpu in shown.gpus if gpu.mig]
    instances = [m for node in nodes.nodes if (m := _CAPABILITY.fullmatch(node.path)) and int(m[1]) >= _INSTANCE]
    if cut and not instances:
        yield _without_instance(cut)


def _without_instance(cut: list[ShownGpu]) -> Finding:
    return Finding(
        code="gpus_seen.mig_without_nodes",
        subject="mig",
        severity=Severity.HIGH,
        title=f"MIG is on for {len(cut)} GPUs, and no instance is in the container",
        observed=", ".join(gpu.bus_id for gpu in cut) + "; no /dev/nvidia-caps/nvidia-cap3 or above",
        expected="the two nodes of each instance that the container is to use, or MIG off",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(gpu.evidence for gpu in cut),
        origin="NVIDIA Multi-Instance GPU User Guide, Device Nodes and Capabilities",
        remedy=_remedy(
            "On the host, `nvidia-smi -L` lists instances and /proc/driver/nvidia-caps/mig-minors the numbers of their "
            "nodes. Give the container its two: `pct set ID -dev8 /dev/nvidia-caps/nvidia-capN,mode=0444`. Or turn MIG "
            "off, with no process on the GPU: `nvidia-smi -i BUSID -mig 0`.",
            "The entries in the container's configuration stay; numbers follow the order of the instances, so make "
            "those at boot always in the same order.",
        ),
    )


def unused(given: Given, engine: ContainerEngine | None) -> Iterator[Finding]:
    """GPUs that a running engine does not hold."""
    held = {minor for process in engine.cuda for minor in process.gpus} if engine else set()
    idle = sorted(given.keys() - held)
    if held and idle:
        yield Finding(
            code="gpus_seen.unused",
            subject="gpus",
            severity=Severity.INFO,
            title=f"{len(idle)} of {len(given)} GPUs of the container are not in use",
            observed="not held by a CUDA process: " + ", ".join(given[minor][1].bus_id for minor in idle),
            expected="all of them, if they are meant for this engine",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=tuple(given[minor][0].evidence for minor in idle),
            origin="vLLM, Parallelism and Scaling: one worker for each GPU of the tensor-parallel size",
            remedy=_remedy(
                "If they are meant for it, raise the engine's tensor-parallel or data-parallel size, or "
                "CUDA_VISIBLE_DEVICES.",
                "Where the engine is started from. Or take the nodes out of the container's configuration.",
            ),
        )


def _remedy(now: str, lasting: str) -> Remedy:
    return Remedy(
        now=now,
        lasting=lasting,
        undo="Put the configuration back and restart.",
        cost="A restart of the engine or the container.",
        risk=Risk.R2,
        restarts="the inference engine, or the container where its configuration changes",
        verify_agent=AGENT_ID,
    )
