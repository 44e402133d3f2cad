"""Judgements on where an engine runs: CPUs, NUMA memory, swap."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.engine.fact import Engine
from gapline.agents.engine.process import EngineProcess
from gapline.agents.engine.remedies import restart
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Severity
from gapline.orchestrator.model.limit import Limits

LIMITS = ("spare_cpus", "remote_share", "remote_gib", "swapped_mib")


def codes(area: str) -> tuple[Code, ...]:
    """The codes of this module below `area`."""
    return (
        Code(
            code=f"{area}.few_cpus",
            title="The engine may use fewer CPUs than it has busy processes",
            meaning="One process for each GPU, the engine's core and its server run at the same time, and the core "
            "never sleeps. With fewer CPUs than that they take turns, and every turn is a pause of the GPUs.",
        ),
        Code(
            code=f"{area}.memory_elsewhere",
            title="Most of a process's memory lies on another NUMA node than its GPU",
            meaning="Copies to the GPU then cross the link between the sockets. What lies in pinned buffers of the "
            "driver is not counted here.",
        ),
        Code(
            code=f"{area}.swapped",
            title="Memory of the engine lies in swap",
            meaning="What a step touches there comes back from a disk, while all GPUs of the engine wait.",
        ),
    )


def placement_findings(engine: Engine, limits: Limits, area: str, agent: str) -> Iterator[Finding]:
    """At most one of each kind, for the worst process."""
    yield from _few_cpus(engine, int(limits.number("spare_cpus")), area, agent)
    yield from _memory_elsewhere(engine, limits, area, agent)
    yield from _swapped(engine, limits.number("swapped_mib"), area, agent)


def _few_cpus(engine: Engine, spare: int, area: str, agent: str) -> Iterator[Finding]:
    short = []
    for process in engine.cuda:
        group = [one for one in engine.cuda if engine.group(one) == engine.group(process)]
        held = len({gpu for one in group for gpu in one.gpus})
        if process.cpus is not None and held and process.cpus < held + spare:
            short.append((process.cpus - held, process, held))
    for _, process, gpus in sorted(short, key=lambda row: (row[0], row[1].pid))[:1]:
        yield Finding(
            code=f"{area}.few_cpus",
            subject="cpus",
            severity=Severity.HIGH if gpus > 1 else Severity.MEDIUM,
            title=f"{process.name} ({process.pid}) may use {process.cpus} CPUs, and its engine {gpus} GPUs",
            observed=f"Cpus_allowed_list {process.cpus_allowed}",
            expected=f"at least {gpus + spare} CPUs",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=_cited(process, "Cpus_allowed_list"),
            origin="vLLM, Optimization and Tuning, CPU Resources for GPU Deployments: at least 2 + N cores for N GPUs",
            remedy=restart(
                "Give the engine more CPUs: the container's `cores` (Proxmox VE: `pct set ID -cores N`, applied live), "
                "`CPUAffinity=` or `AllowedCPUs=` of its systemd unit, `--cpuset-cpus` of its Docker container, or a "
                "`taskset` before its command.",
                agent,
            ),
        )


def _memory_elsewhere(engine: Engine, limits: Limits, area: str, agent: str) -> Iterator[Finding]:
    nodes = {gpu.minor: gpu for gpu in engine.gpus}
    remote = []
    for process in engine.cuda:
        home = {nodes[gpu].node for gpu in process.gpus if gpu in nodes}
        node = home.pop() if len(home) == 1 and all(gpu in nodes for gpu in process.gpus) else None
        total = sum(process.memory_kib.values())
        away = total - process.memory_kib.get(node, 0) if node is not None else 0
        if away > limits.number("remote_share") * total and away >= limits.number("remote_gib") * (1 << 20):
            remote.append((away, process, node))
    for away, process, node in sorted(remote, key=lambda row: (-row[0], row[1].pid))[:1]:
        yield Finding(
            code=f"{area}.memory_elsewhere",
            subject="numa",
            severity=Severity.LOW,
            title=f"{away / (1 << 20):.1f} GiB of {process.name} ({process.pid}) lie far from its GPU",
            observed=", ".join(f"node {at}: {kib} KiB" for at, kib in sorted(process.memory_kib.items())),
            expected=f"most of it on node {node}, where GPU {process.gpus[0]} is",
            effect=Effect.PLAUSIBLE,
            confidence=Confidence.VERIFIED,
            evidence=(*_cited(process, "process"), *(nodes[gpu].evidence for gpu in process.gpus)),
            settled_by="host-to-GPU bandwidth and decode time with the process bound to that node, and without",
            remedy=restart(
                f"Start the process with `numactl --cpunodebind={node} --preferred={node}`, or use the engine's own "
                "option (SGLang: --numa-node).",
                agent,
            ),
        )


def _swapped(engine: Engine, most_mib: float, area: str, agent: str) -> Iterator[Finding]:
    swapped = [
        (one.swap_kib, one) for one in engine.cuda if one.swap_kib is not None and one.swap_kib > most_mib * 1024
    ]
    for kib, process in sorted(swapped, key=lambda row: (-row[0], row[1].pid))[:1]:
        yield Finding(
            code=f"{area}.swapped",
            subject="swap",
            severity=Severity.MEDIUM,
            title=f"{kib / 1024:.0f} MiB of {process.name} ({process.pid}) lie in swap",
            observed=f"VmSwap {kib} kB",
            expected=f"at most {most_mib:.0f} MiB",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=_cited(process, "VmSwap"),
            origin="Linux, filesystems/proc.rst, VmSwap; admin-guide/mm/concepts.rst, Reclaim",
            remedy=restart(
                "Restart the engine once memory is free again (`free -m`), and see the memory limit.",
                agent,
                lasting="A memory limit that leaves room for it; `MemorySwapMax=0` in its systemd unit, or `swap: 0` "
                "for the container (Proxmox VE: `pct set ID -swap 0`).",
            ),
        )


def _cited(process: EngineProcess, name: str) -> tuple[Evidence, ...]:
    return tuple(process.evidence[key] for key in dict.fromkeys(("process", name)) if key in process.evidence)
