"""Judgements on the CPUs of a container."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.cpuset_fact import Cpuset
from gapline.agents.host.numa.cpu_list import ranges
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.cpuset"

CODES = (
    Code(
        code="cpuset.not_in_force",
        title="The container does not get all the CPUs that it asks for",
        meaning="cpuset.cpus is a wish; cpuset.cpus.effective is what is left of it after offline CPUs, the cgroups "
        "above, and CPUs that a partition took away (Linux, admin-guide/cgroup-v2.rst).",
    ),
    Code(
        code="cpuset.split_cores",
        title="The container shares cores with others, thread by thread",
        meaning="It has one thread of a core and somebody else may have the other; the two share the core's units and "
        "caches. `cores: N` of Proxmox VE picks CPUs without regard to cores or NUMA nodes.",
    ),
)


def not_in_force(fact: Cpuset) -> Iterator[Finding]:
    """CPUs that are asked for and not there."""
    if fact.asked is None:
        return
    missing = tuple(sorted(set(fact.asked.numbers) - set(fact.effective.numbers)))
    if missing:
        off = set(missing) - set(fact.online.numbers)
        yield Finding(
            code="cpuset.not_in_force",
            subject="cpus",
            severity=Severity.LOW,
            title=f"The container asks for {len(fact.asked.numbers)} CPUs and has {len(fact.effective.numbers)}",
            observed=f"not given: {ranges(missing)[:100]}" + (f"; {len(off)} of them are offline" if off else ""),
            expected=f"cpuset.cpus.effective {ranges(fact.asked.numbers)[:100]}",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=(fact.asked.evidence, fact.effective.evidence, fact.online.evidence),
            origin="Linux, admin-guide/cgroup-v2.rst, Cpuset Interface Files",
            remedy=_remedy(
                "See who has them: `grep -H . /sys/fs/cgroup/*/cpuset.cpus.partition /sys/fs/cgroup/*/cpuset.cpus` on "
                "the host; CPUs that are offline: `/sys/devices/system/cpu/offline`.",
                "Ask for CPUs that are there, by `lxc.cgroup2.cpuset.cpus` in the container's configuration.",
            ),
        )


def split_cores(fact: Cpuset) -> Iterator[Finding]:
    """Cores of which the container has some threads and not all."""
    if not fact.restricted:
        return
    mine, online = set(fact.effective.numbers), set(fact.online.numbers)
    split = [core for core in fact.cores if 0 < len(mine.intersection(core)) < len(online.intersection(core))]
    if split:
        yield Finding(
            code="cpuset.split_cores",
            subject="cores",
            severity=Severity.LOW,
            title=f"{len(split)} cores belong to the container by one thread only",
            observed=f"CPUs {ranges(fact.effective.numbers)[:100]}; for example core {ranges(split[0])}",
            expected="whole cores",
            effect=Effect.PLAUSIBLE,
            confidence=Confidence.VERIFIED,
            evidence=(fact.effective.evidence,),
            settled_by="decode rate with whole cores, while others work on the same host",
            remedy=_remedy(
                "Choose whole cores near the GPUs: threads of a core are in "
                "/sys/devices/system/cpu/cpu*/topology/thread_siblings_list.",
                "`lxc.cgroup2.cpuset.cpus: LIST` in the configuration; Proxmox VE then leaves the choice alone.",
            ),
        )


def _remedy(now: str, lasting: str) -> Remedy:
    return Remedy(
        now=now,
        lasting=lasting,
        undo="Put the old list back.",
        cost="Others can use fewer CPUs freely.",
        risk=Risk.R2,
        restarts="the container",
        verify_agent=AGENT_ID,
    )
