"""Pair agent `pair.resources_seen`: do programs in the container see the CPUs and the memory that they may use?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from gapline.agents.byte_size import size
from gapline.agents.container.cgroup_reading import CgroupLimits
from gapline.agents.container.cpuset_fact import Cpuset
from gapline.agents.container.lxcfs_reading import Lxcfs
from gapline.orchestrator.model.agent import Code, Facts, Layer, PairAgent
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

AGENT_ID = "pair.resources_seen"
_TOTAL = re.compile(r"MemTotal:\s+([0-9]{1,12}) kB")

CODES = (
    Code(
        code="resources.memory_seen",
        title="/proc/meminfo shows more memory than the container may use",
        meaning="lxcfs is there, and shows another size than the host's limit. Pools and caches that are sized by "
        "MemTotal grow beyond the limit, and the kernel kills.",
    ),
    Code(
        code="resources.cpus_seen",
        title="/proc/stat shows more CPUs than the container may use",
        meaning="lxcfs is there, and does not cut the CPUs to the container's cpuset. What counts CPUs there or in "
        "/proc/cpuinfo starts too many threads; nproc and sched_getaffinity(2) tell the truth.",
    ),
    Code(
        code="resources.quota_unseen",
        title="A CPU quota is smaller than the number of CPUs that programs count",
        meaning="sched_getaffinity(2), nproc and Python's os.cpu_count know nothing of a quota. Thread pools get one "
        "thread for each CPU, use up the quota of a period together, and then all stand still.",
    ),
)


def judge(facts: Facts, _: Limits) -> Outcome:
    """Where lxcfs is not mounted at all, `container.lxcfs` says so; here it is there and wrong, or cannot know."""
    seen, limits, cpuset = facts.of(Lxcfs), facts.of(CgroupLimits), facts.get(Cpuset)
    findings = (*_memory(seen, limits), *_cpus(seen, cpuset), *_quota(seen, limits))
    return judged(seen, findings, tuple(_unseen(limits, cpuset)))


def _unseen(limits: CgroupLimits, cpuset: Cpuset | None) -> Iterator[Problem]:
    if not limits.unified:
        yield _problem("what the container was given was not seen: the host has a cgroup v1 or hybrid layout")
    elif cpuset is None:
        yield _problem("the CPUs that the container was given were not seen")


def _problem(detail: str) -> Problem:
    return Problem(kind=ProblemKind.UNSEEN, detail=detail, hint="gapline rerun container.cpuset tells why.")


def _memory(seen: Lxcfs, limits: CgroupLimits) -> Iterator[Finding]:
    file = seen.file("/proc/meminfo")
    match = _TOTAL.fullmatch(file.first) if file else None
    limit = limits.memory_max
    if not seen.mounted or file is None or match is None or limit is None or limit.value is None:
        return
    total = int(match[1]) * 1024
    if total > limit.value:
        yield _finding(
            "resources.memory_seen",
            f"Programs in the container see {size(total)} of memory and may use {size(limit.value)}",
            (file.first, limit.evidence.text),
            (file.evidence, limit.evidence),
            "Set sizes of pools, caches and swap space of the engine by hand, to fit the limit.",
        )


def _cpus(seen: Lxcfs, cpuset: Cpuset | None) -> Iterator[Finding]:
    given = cpuset.effective if cpuset else None
    if not seen.mounted or given is None or seen.cpus is None or seen.cpus <= len(given.numbers):
        return
    yield _finding(
        "resources.cpus_seen",
        f"Programs in the container see {seen.cpus} CPUs in /proc/stat and may use {len(given.numbers)}",
        (f"{seen.cpus} CPUs", f"{len(given.numbers)} CPUs"),
        (seen.cpus_evidence, given.evidence),
        f"Set thread counts by hand, such as OMP_NUM_THREADS={max(1, len(given.numbers) // 2)}.",
    )


def _quota(seen: Lxcfs, limits: CgroupLimits) -> Iterator[Finding]:
    quota = limits.cpu_quota
    if quota is None or quota.cpus is None or seen.allowed is None or seen.allowed <= math.ceil(quota.cpus):
        return
    yield _finding(
        "resources.quota_unseen",
        f"Programs in the container count {seen.allowed} CPUs and may use the time of {quota.cpus:g}",
        (f"{seen.allowed} CPUs by affinity", f"a quota of {quota.cpus:g} CPUs"),
        (quota.evidence, seen.cpus_evidence),
        f"Set thread counts by hand, such as OMP_NUM_THREADS={max(1, math.floor(quota.cpus))}.",
    )


def _finding(code: str, title: str, told: tuple[str, str], evidence: tuple[Evidence, ...], now: str) -> Finding:
    return Finding(
        code=code,
        subject=code.partition(".")[2].partition("_")[0],
        severity=Severity.LOW,
        title=title,
        observed=told[0],
        expected=told[1],
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=evidence,
        origin="lxcfs, README and issues 298 and 401; sched_getaffinity(2); Linux, scheduler/sched-bwc.rst",
        remedy=Remedy(
            now=now,
            lasting="Give CPUs by a cpuset (`lxc.cgroup2.cpuset.cpus`, or `cores`) and not by a quota (`cpulimit`); "
            "keep lxcfs on the host up to date. Its mounts are made when the container starts.",
            undo="Remove the setting from the engine; put the old line back.",
            cost="None for the engine.",
            risk=Risk.R2,
            restarts="the engine; the container for the lasting repair",
            verify_agent=AGENT_ID,
        ),
    )


AGENT = PairAgent(
    id=AGENT_ID,
    title="CPUs and memory given and seen",
    layer=Layer.CONTAINER,
    needs=(Lxcfs, CgroupLimits),
    wants=(Cpuset,),
    judge=judge,
    codes=CODES,
)
