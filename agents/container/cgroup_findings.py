"""Judgements on a container's cgroup: memory that ran out, CPU time that is held back, tasks and disks."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.byte_size import size
from gapline.agents.container.cgroup_files import Counter, cited
from gapline.agents.container.cgroup_reading import CgroupLimits, CpuQuota
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

AGENT_ID = "container.cgroup_limits"
_V2 = "Linux, admin-guide/cgroup-v2.rst"

CODES = (
    Code(
        code="cgroup.out_of_memory",
        title="The kernel killed processes of the container for want of memory",
        meaning="memory.events counts since the container was started. memory.events.local tells whose limit was "
        "reached: the container's own, one below it, or none, and then the whole host had run out.",
    ),
    Code(
        code="cgroup.memory_full",
        title="Memory that cannot be given back fills the container's limit",
        meaning="Anonymous memory, shared memory and kernel objects stay; only page cache is given back. The limit is "
        "reached by what is left. Pinned buffers of NVIDIA's open module are not counted, so less "
        "is left than it looks.",
    ),
    Code(
        code="cgroup.memory_stalled",
        title="Everything in the container waits for memory",
        meaning="The share of the last minute in which no task got on because all of them reclaimed memory or waited "
        "for it (pressure stall information). Page cache counts against the limit, so reading a model can do it.",
    ),
    Code(
        code="cgroup.cpu_throttled",
        title="The CPU quota stops the container",
        meaning="When the quota of a period is used up, every thread of the container stands still until the next one, "
        "also the thread that feeds the GPUs (Linux, scheduler/sched-bwc.rst).",
    ),
    Code(
        code="cgroup.tiny_quota",
        title="The CPU quota is less than an engine's own threads use",
        meaning="The loop of an engine never sleeps and its workers poll: below one CPU each period brings a "
        "standstill. A quota says nothing about which CPUs are used, and tools that count CPUs do not all show it.",
    ),
    Code(
        code="cgroup.tasks",
        title="The container has nearly all the tasks that it may have",
        meaning="At pids.max, fork and clone fail with EAGAIN: 'can't start new thread', 'Resource temporarily "
        "unavailable'.",
    ),
    Code(
        code="cgroup.disk_limited",
        title="The container's disks are limited",
        meaning="io.max holds back reading and writing, and so the loading of weights. It has no effect on decoding.",
    ),
)


def findings(fact: CgroupLimits, limits: Limits) -> Iterator[Finding]:
    """All of them; a limit that nothing runs into is none."""
    yield from _killed(fact)
    yield from _full(fact, limits.number("full_share"))
    yield from _stalled(fact, limits.number("stalled_share"))
    yield from _quota(fact, limits)
    yield from _tasks(fact, limits.number("tasks_share"))
    yield from _disks(fact)


def _killed(fact: CgroupLimits) -> Iterator[Finding]:
    kills = fact.memory_events.get("oom_kill")
    if kills is None or not kills.value:
        return
    own, below = fact.memory_events_local.get("oom"), fact.memory_events.get("oom")
    whose, severity, reason = _whose(own, below)
    yield Finding(
        code="cgroup.out_of_memory",
        subject="memory",
        severity=severity,
        base_severity=Severity.CRITICAL,
        severity_reason=reason,
        title=f"The kernel killed {kills.value} processes of the container for want of memory",
        observed=f"oom_kill {kills.value} since its start; {whose}",
        expected="0",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=cited(kills, own, below, fact.memory_max),
        origin=_V2,
        remedy=_more_memory(
            fact,
            "See which process it was and when: `journalctl -k -g 'oom-kill|Out of memory'` on the host "
            "(host.kernel_log names it). If the container's own limit was reached, raise it, live: ",
        ),
    )


def _whose(own: Counter | None, below: Counter | None) -> tuple[str, Severity, str]:
    unsure = "the counter tells neither when it was nor whether it was the inference process"
    if own is not None and own.value:
        return "the container's own limit was reached", Severity.HIGH, unsure
    if below is not None and below.value and own is not None:
        return "a limit below the container's was reached", Severity.MEDIUM, "a service inside has a limit of its own"
    if own is not None:
        return "no limit was reached: the host itself had run out", Severity.HIGH, unsure
    return "whose limit was reached is not told", Severity.HIGH, unsure


def _full(fact: CgroupLimits, share: float) -> Iterator[Finding]:
    limit = fact.memory_max.value if fact.memory_max else None
    parts = [fact.memory_stat.get(name) for name in ("anon", "shmem", "slab_unreclaimable")]
    held = sum(part.value for part in parts if part)
    if not limit or fact.memory_max is None or None in parts or held < share * limit:
        return
    yield Finding(
        code="cgroup.memory_full",
        subject="memory",
        severity=Severity.MEDIUM,
        title=f"{held / limit:.0%} of the container's memory limit is held by what cannot be given back",
        observed=f"{size(held)} of {size(limit)}",
        expected=f"less than {share:.0%}",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=cited(fact.memory_max, *parts),
        settled_by="oom_kill in memory.events after the largest load, and memory.pressure during it",
        remedy=_more_memory(
            fact,
            "Give the engine less host memory (swap space, CPU offload, cache of prefixes), or raise the limit, live: ",
        ),
    )


def _stalled(fact: CgroupLimits, share: float) -> Iterator[Finding]:
    pressure = fact.memory_pressure
    if pressure is None or pressure.share < share:
        return
    yield Finding(
        code="cgroup.memory_stalled",
        subject="memory",
        severity=Severity.HIGH,
        title=f"For {pressure.share:.1%} of the last minute nothing in the container got on for want of memory",
        observed=f"{pressure.share * 1000:.0f} ms of each second",
        expected=f"less than {share:.0%}",
        effect=Effect.MEASURED,
        confidence=Confidence.VERIFIED,
        evidence=cited(pressure, fact.memory_current, fact.memory_high, fact.memory_max),
        remedy=_more_memory(
            fact,
            "If it loads a model, look again when that is over: `gapline rerun container.cgroup_limits`. Otherwise "
            "raise the limit, live: ",
        ),
    )


def _quota(fact: CgroupLimits, limits: Limits) -> Iterator[Finding]:
    quota = fact.cpu_quota
    if quota is None or quota.cpus is None:
        return
    yield from _throttled(fact, quota, limits.number("throttled_share"))
    if quota.cpus < limits.number("least_cpus"):
        yield Finding(
            code="cgroup.tiny_quota",
            subject="cpu",
            severity=Severity.HIGH,
            title=f"The container may use {quota.cpus:g} CPUs' worth of time",
            observed=f"{quota.cpus * quota.period_us / 1000:g} ms of each {quota.period_us / 1000:g} ms",
            expected="no quota for a container with GPUs",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=(quota.evidence,),
            origin="Linux, scheduler/sched-bwc.rst: all threads of a group are stopped at its quota",
            remedy=_no_quota(fact),
        )


def _throttled(fact: CgroupLimits, quota: CpuQuota, share: float) -> Iterator[Finding]:
    periods, stops = fact.cpu_stat.get("nr_periods"), fact.cpu_stat.get("nr_throttled")
    lost, now = fact.cpu_stat.get("throttled_usec"), fact.cpu_pressure
    if not (periods and stops and lost) or not stops.value or stops.value < share * periods.value:
        return
    waits = now is not None and now.share >= share
    seen = "in the last minute nothing waited" if now else "whether it happens now was not seen"
    yield Finding(
        code="cgroup.cpu_throttled",
        subject="cpu",
        severity=Severity.HIGH if waits else Severity.MEDIUM,
        base_severity=Severity.HIGH,
        severity_reason="" if waits else f"the counters go back to its start, and {seen}",
        title=f"The CPU quota stopped the container in {stops.value / max(periods.value, 1):.0%} of its periods",
        observed=f"{stops.value} of {periods.value} periods of {quota.period_us / 1000:g} ms, on average "
        f"{lost.value / stops.value / 1000:.0f} ms of all its CPUs together; quota {quota.cpus:g} CPUs",
        expected="no quota for a container with GPUs",
        effect=Effect.MEASURED,
        confidence=Confidence.VERIFIED,
        evidence=(*cited(stops, periods, lost, now), quota.evidence),
        remedy=_no_quota(fact),
    )


def _tasks(fact: CgroupLimits, share: float) -> Iterator[Finding]:
    most = fact.pids_max.value if fact.pids_max else None
    used = fact.pids_current.value if fact.pids_current else None
    failed = fact.pids_events.get("max")
    refused = failed is not None and failed.value > 0
    if most is None or used is None or (used < share * most and not refused):
        return
    yield Finding(
        code="cgroup.tasks",
        subject="pids",
        severity=Severity.HIGH if refused else Severity.MEDIUM,
        title=f"The container has {used} of at most {most} tasks"
        + (f", and {failed.value} could not be started" if refused and failed else ""),
        observed=f"pids.current {used}, pids.max {most}",
        expected=f"less than {share:.0%}, and none refused",
        effect=Effect.BREAKS if refused else Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=cited(fact.pids_current, fact.pids_max, failed),
        settled_by="" if refused else "pids.events after the largest load: `max` counts what was refused",
        remedy=_remedy(
            f"As root on the host: `echo max > {fact.folder}/pids.max` (lxc-cgroup would reach the inner cgroup).",
            "Raise or remove `lxc.cgroup2.pids.max` in the configuration.",
            "Put the old value back.",
            "A runaway container can start more tasks.",
        ),
    )


def _disks(fact: CgroupLimits) -> Iterator[Finding]:
    if not fact.io_limits:
        return
    yield Finding(
        code="cgroup.disk_limited",
        subject="io",
        severity=Severity.LOW,
        title="The container's disks are limited",
        observed="; ".join(at.text for at in fact.io_limits)[:300],
        expected="no limit where models are read from these disks",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=fact.io_limits,
        settled_by="the time to load a model with and without the limit",
        remedy=_remedy(
            "Raise or remove the `lxc.cgroup2.io.max` lines of the configuration.",
            "They are read at every start of the container.",
            "Put the lines back.",
            "The container can take all of a disk's time from others.",
            Risk.R2,
        ),
    )


def _more_memory(fact: CgroupLimits, first: str) -> Remedy:
    by_pct = f"`pct set {fact.name} -memory MIB`"
    plain = f"`echo BYTES > {fact.folder}/memory.max` as root on the host"
    return _remedy(
        f"{first}{by_pct if fact.proxmox else plain}.",
        f"{by_pct} writes it to the configuration, and sets memory.high a little below memory.max. "
        if fact.proxmox
        else "`lxc.cgroup2.memory.max` in the configuration. "
        "Leave room on the host beside it: pinned buffers are not counted.",
        "Set the old value again.",
        "Memory that other containers and ZFS's cache cannot have.",
    )


def _no_quota(fact: CgroupLimits) -> Remedy:
    return _remedy(
        f"As root on the host, live: `echo max > {fact.folder}/cpu.max`.",
        (f"`pct set {fact.name} -delete cpulimit`" if fact.proxmox else "Remove `lxc.cgroup2.cpu.max`")
        + ". Give CPUs by `lxc.cgroup2.cpuset.cpus` instead: near the GPUs, and without standstills.",
        "Set the old value again.",
        "Other containers lose the protection that the quota was; cpu.weight still weighs them when CPUs are short.",
    )


def _remedy(now: str, lasting: str, undo: str, cost: str, risk: Risk = Risk.R1) -> Remedy:
    return Remedy(
        now=now,
        lasting=lasting,
        undo=undo,
        cost=cost,
        risk=risk,
        restarts="nothing" if risk is Risk.R1 else "the container",
        verify_agent=AGENT_ID,
    )
