"""Pair agent `pair.configuration_in_force`: does what the configuration asks for hold in the running container?"""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.cgroup_reading import CgroupLimits
from gapline.agents.container.configuration_fact import Configuration, Form
from gapline.agents.container.cpuset_fact import Cpuset
from gapline.agents.pair.in_force_findings import AGENT_ID, CODES, cores, cpu_quota, memory, raw_lines, swap
from gapline.orchestrator.model.agent import Facts, Layer, PairAgent
from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind


def judge(facts: Facts, _: Limits) -> Outcome:
    """The file as it stands now, against what the kernel enforces. Pending changes are told by
    `container.configuration`: Proxmox VE keeps them apart, and they are not asked for yet.
    """
    configuration, limits = facts.of(Configuration), facts.of(CgroupLimits)
    if configuration.uid_map is None:
        return NotApplicable("the container does not run, so nothing is in force", configuration)
    findings = tuple(_findings(configuration, limits, facts.get(Cpuset)))
    return judged(limits, findings, tuple(_unseen(configuration, limits)))


def _findings(configuration: Configuration, limits: CgroupLimits, cpuset: Cpuset | None) -> Iterator[Finding]:
    if limits.unified:
        yield from memory(configuration, limits)
        yield from swap(configuration, limits)
        yield from cpu_quota(configuration, limits)
        if cpuset is not None:
            yield from cores(configuration, cpuset)
    yield from raw_lines(configuration)


def _unseen(configuration: Configuration, limits: CgroupLimits) -> Iterator[Problem]:
    if not limits.unified:
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail="the host has a cgroup v1 or hybrid layout, in which limits in force are not read",
            hint="Compare by hand: memory.limit_in_bytes and cpu.cfs_quota_us of the container's cgroups.",
        )
    if configuration.form is Form.PROXMOX and configuration.generated is None:
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail=f"/var/lib/lxc/{configuration.name}/config, which the last start made, was not seen",
            hint="Log in as root, or let the audit read that file.",
        )


AGENT = PairAgent(
    id=AGENT_ID,
    title="Configuration against what is in force",
    layer=Layer.CONTAINER,
    needs=(Configuration, CgroupLimits),
    wants=(Cpuset,),
    judge=judge,
    codes=CODES,
)
