"""Judgements on what the kernel is told to do with memory."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.byte_size import gib
from gapline.agents.host.memory.fact import MemoryPolicy
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

AGENT_ID = "host.memory_policy"
_THP = "/sys/kernel/mm/transparent_hugepage"
CODES = (
    Code(
        code="memory.thp_stalls",
        title="Every program waits for huge pages",
        meaning="With transparent huge pages and their defragmentation both on `always`, a page fault of any program "
        "reclaims and compacts memory on the spot until it gets a huge page (Linux admin-guide/mm/transhuge.rst).",
    ),
    Code(
        code="memory.huge_pages_unused",
        title="Memory is set aside as huge pages that nobody uses",
        meaning="Huge pages in the kernel's pool serve only who asks for them; page cache and ordinary processes, an "
        "engine's pinned buffers included, cannot have this memory (Linux admin-guide/mm/hugetlbpage.rst).",
    ),
    Code(
        code="memory.zone_reclaim",
        title="The kernel reclaims near memory before it takes far memory",
        meaning="vm.zone_reclaim_mode makes an allocation drop caches of its own NUMA node, perhaps writing and "
        "swapping, before it looks at another node. It is off by default (Linux admin-guide/sysctl/vm.rst).",
    ),
    Code(
        code="memory.overcommit_strict",
        title="Address space counts as memory",
        meaning="With vm.overcommit_memory 2 the kernel refuses reservations beyond a fixed sum, used or not (Linux "
        "mm/overcommit-accounting.rst). Engines and CUDA reserve far more than they touch.",
    ),
    Code(
        code="memory.swap_on_zvol",
        title="Swap lies on a ZFS volume",
        meaning="ZFS needs memory to write, also when the kernel writes to swap because there is none: the host can "
        "block. Proxmox VE's administration guide advises against it (chapter ZFS, 'SWAP on ZFS').",
    ),
    Code(
        code="memory.swapped_out",
        title="Swap is in use",
        meaning="Something on this host was swapped out. What an engine touches again then waits for the disk.",
    ),
)


def rule_findings(fact: MemoryPolicy, limits: Limits) -> Iterator[Finding]:
    """What is set, and what swap and huge pages hold."""
    if fact.value("enabled") == "always" and fact.value("defrag") == "always":
        yield _thp_stalls(fact)
    if sum(pool.unused_kib for pool in fact.pools) > limits.number("unused_share") * fact.total_kib:
        yield _huge_pages_unused(fact)
    if fact.value("zone_reclaim_mode") not in {"", "0"}:
        yield _zone_reclaim(fact)
    if fact.value("overcommit_memory") == "2":
        yield _overcommit_strict(fact)
    if any(area.path.startswith("/dev/zd") for area in fact.swaps):
        yield _swap_on_zvol(fact)
    if sum(area.used_kib for area in fact.swaps) > limits.number("swapped_share") * fact.total_kib:
        yield _swapped_out(fact)


def _thp_stalls(fact: MemoryPolicy) -> Finding:
    return Finding(
        code="memory.thp_stalls",
        subject="transparent huge pages",
        severity=Severity.LOW,
        title="A page fault of any program compacts memory to get a huge page",
        observed="enabled: always, defrag: always",
        expected="defrag madvise, so that only who asks for huge pages waits for them",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(fact.settings["enabled"].evidence, fact.settings["defrag"].evidence),
        origin="Linux admin-guide/mm/transhuge.rst: with `always` an application stalls on reclaim and compaction",
        remedy=_set(
            f"echo madvise > {_THP}/defrag",
            f"Write `w {_THP}/defrag - - - - madvise` into /etc/tmpfiles.d/thp-defrag.conf.",
            f"echo always > {_THP}/defrag",
            "Programs that never ask for huge pages get fewer of them at once; khugepaged still collects them.",
        ),
    )


def _huge_pages_unused(fact: MemoryPolicy) -> Finding:
    pools = [pool for pool in fact.pools if pool.unused_kib]
    unused = sum(pool.unused_kib for pool in pools)
    shrink = tuple(
        f"echo {pool.kept - max(0, pool.free - pool.promised)} > "
        f"/sys/kernel/mm/hugepages/hugepages-{pool.page_kib}kB/nr_hugepages"
        for pool in pools
    )
    return Finding(
        code="memory.huge_pages_unused",
        subject="huge pages",
        severity=Severity.MEDIUM,
        title=f"{gib(unused)} of {gib(fact.total_kib)} are set aside as huge pages that nobody uses",
        observed="; ".join(
            f"{pool.kept} pages of {pool.page_kib} KiB, {pool.free} free, {pool.promised} of these promised"
            for pool in pools
        ),
        expected="as many as programs ask for, or none",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(line for pool in pools for line in pool.evidence),
        origin="Linux admin-guide/mm/hugetlbpage.rst: pages of the pool cannot be used for other purposes",
        remedy=_set(
            f"First see that no virtual machine with `hugepages:` is about to start. {'; '.join(shrink)}",
            "Take vm.nr_hugepages out of /etc/sysctl.d, or hugepages= out of the kernel's command line.",
            "; ".join(
                f"echo {pool.kept} > /sys/kernel/mm/hugepages/hugepages-{pool.page_kib}kB/nr_hugepages"
                for pool in pools
            )
            + "   # may get fewer while memory is fragmented",
            "A program that wants them later may not get them before a reboot.",
        ),
    )


def _zone_reclaim(fact: MemoryPolicy) -> Finding:
    value, single = fact.value("zone_reclaim_mode"), fact.nodes_with_cpus < 2  # noqa: PLR2004 - another node to take from
    return Finding(
        code="memory.zone_reclaim",
        subject="vm.zone_reclaim_mode",
        severity=Severity.INFO if single else Severity.MEDIUM,
        base_severity=Severity.MEDIUM,
        severity_reason="medium → info: only one NUMA node has CPUs" if single else "",
        title=f"vm.zone_reclaim_mode is {value}",
        observed=f"{value}; {fact.nodes_with_cpus} NUMA node(s) with CPUs",
        expected="0, the kernel's default",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(fact.settings["zone_reclaim_mode"].evidence,),
        settled_by="the time to load a model, and a decode benchmark, with 0 and with this value",
        remedy=_sysctl("zone_reclaim_mode", "0", value, "Far memory is taken before caches are dropped."),
    )


def _overcommit_strict(fact: MemoryPolicy) -> Finding:
    amounts = [
        f"vm.{name} = {fact.value(name)}" for name in ("overcommit_ratio", "overcommit_kbytes") if fact.value(name)
    ]
    return Finding(
        code="memory.overcommit_strict",
        subject="vm.overcommit_memory",
        severity=Severity.MEDIUM,
        title="Reservations count as memory: vm.overcommit_memory is 2",
        observed=", ".join(("vm.overcommit_memory = 2", *amounts)),
        expected="0, the kernel's default, or 1",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(fact.settings["overcommit_memory"].evidence,),
        settled_by="starting the engine: reservations fail with ENOMEM while Committed_AS nears CommitLimit in "
        "/proc/meminfo",
        remedy=_sysctl("overcommit_memory", "0", "2", "Without memory a host ends processes instead of refusing."),
    )


def _swap_on_zvol(fact: MemoryPolicy) -> Finding:
    areas = [area for area in fact.swaps if area.path.startswith("/dev/zd")]
    named = " ".join(area.path for area in areas)
    return Finding(
        code="memory.swap_on_zvol",
        subject="swap",
        severity=Severity.MEDIUM,
        title=f"Swap lies on ZFS: {named}",
        observed="; ".join(f"{area.path}: {gib(area.size_kib)}, {gib(area.used_kib)} used" for area in areas),
        expected="swap on a partition of its own, or none",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(area.evidence for area in areas),
        origin="Proxmox VE administration guide, chapter ZFS, 'SWAP on ZFS': it can block the server or load its disks",
        remedy=_set(
            f"If free memory is larger than what swap holds: swapoff {named}",
            "Take its line out of /etc/fstab; put swap on a partition outside of ZFS if it is wanted.",
            f"swapon {named}",
            "Less room before the kernel ends processes for want of memory.",
        ),
    )


def _swapped_out(fact: MemoryPolicy) -> Finding:
    used = sum(area.used_kib for area in fact.swaps)
    swappiness = fact.value("swappiness")
    return Finding(
        code="memory.swapped_out",
        subject="swap",
        severity=Severity.INFO,
        title=f"{gib(used)} are swapped out",
        observed=f"{gib(used)} in {', '.join(area.path for area in fact.swaps)}; vm.swappiness = {swappiness or '?'}",
        expected="nothing of an inference process",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(area.evidence for area in fact.swaps),
        settled_by="grep VmSwap /proc/PID/status of the engine, and vmstat 1 (si, so) during a decode benchmark",
        remedy=_set(
            "See whose it is: grep VmSwap /proc/[0-9]*/status | sort -k2 -n | tail",
            "For a container of Proxmox VE `swap: 0` in its configuration keeps its processes out of swap.",
            "Take the line back.",
            "A container without swap has its processes killed earlier when it reaches its memory limit.",
        ),
    )


def _sysctl(name: str, value: str, before: str, cost: str) -> Remedy:
    file = f"/etc/sysctl.d/90-{name.replace('_', '-')}.conf"
    return _set(
        f"sysctl -w vm.{name}={value}",
        f"echo vm.{name}={value} > {file} && sysctl --system; look for the line that sets {before}: grep -r {name} "
        "/etc/sysctl.conf /etc/sysctl.d",
        f"sysctl -w vm.{name}={before}; rm {file}",
        cost,
        commands=(f"sysctl -w vm.{name}={value}",),
    )


def _set(now: str, lasting: str, undo: str, cost: str, commands: tuple[str, ...] = ()) -> Remedy:
    return Remedy(
        now=now,
        lasting=lasting,
        undo=undo,
        cost=cost,
        risk=Risk.R1,
        restarts="nothing",
        verify_agent=AGENT_ID,
        commands=commands,
    )
