"""Judgements on the load while we looked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.load_reading import GroupLoad, Load, Stall
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="load.busy",
        title="The CPUs were busy while we looked",
        meaning="Whatever was measured in these minutes was measured beside this load.",
    ),
    Code(
        code="load.steal",
        title="The hypervisor takes CPU time away",
        meaning="The guest's CPUs were ready to run and were not run (field steal of /proc/stat): each such wait "
        "delays the next kernel launch, and nothing inside the guest can be done about it.",
    ),
    Code(
        code="load.memory_stalls",
        title="Everything waits for memory now and then",
        meaning="Shares of time in which no task could go on because of memory: reclaim, swap, refaults (Linux, "
        "accounting/psi.rst).",
    ),
    Code(
        code="load.io_stalls",
        title="Tasks waited for disks while we looked",
        meaning="Loading a model does that, and is over afterwards; a backup or a scrub does it, too.",
    ),
)


def load_findings(fact: Load, limits: Limits) -> Iterator[Finding]:
    """Information, except for what was measured to take time away."""
    yield from _busy(fact, limits.number("busy_share"))
    yield from _steal(fact, limits.number("steal_share"))
    for stall in fact.stalls:
        if stall.resource == "memory" and stall.full_share > limits.number("memory_stall_share"):
            yield _memory(fact, stall)
        if stall.resource == "io" and stall.full_share > limits.number("io_stall_share"):
            yield _io(fact, stall)


def _busy(fact: Load, limit: float) -> Iterator[Finding]:
    if fact.busy_share > limit:
        title = f"The CPUs were busy for {fact.busy_share:.0%} of the time while we looked"
        lasting = (
            "Measure again when these are idle, or keep them off the engine's CPUs: cpuset, cpulimit, CPUAffinity."
        )
        yield _finding(
            fact, "load.busy", Severity.INFO, title=title, evidence=fact.evidence, lasting=lasting, groups=fact.groups
        )


def _steal(fact: Load, limit: float) -> Iterator[Finding]:
    """Only in a guest: Xen's first domain and old kernels show odd values on bare metal."""
    if fact.virtual and fact.steal_share > limit:
        title = f"The hypervisor took {fact.steal_share:.1%} of the CPU time away"
        lasting = (
            "On the hypervisor: fewer guests' CPUs than it has, or CPUs of its own for this guest (affinity, pinning)."
        )
        yield _finding(fact, "load.steal", Severity.MEDIUM, title=title, evidence=fact.evidence, lasting=lasting)


def _memory(fact: Load, stall: Stall) -> Finding:
    title = f"For {stall.full_share:.1%} of the time everything waited for memory"
    lasting = "Find who reclaims: memory limits of containers (memory.events), swap, a page cache that fills a node."
    return _finding(fact, "load.memory_stalls", Severity.MEDIUM, title=title, evidence=stall.evidence, lasting=lasting)


def _io(fact: Load, stall: Stall) -> Finding:
    title = f"For {stall.full_share:.1%} of the time everything waited for disks"
    lasting = "Measure again when it is over."
    return _finding(fact, "load.io_stalls", Severity.INFO, title=title, evidence=stall.evidence, lasting=lasting)


def _finding(  # noqa: PLR0913 - what differs between four findings of one form
    fact: Load,
    code: str,
    severity: Severity,
    *,
    title: str,
    evidence: Sequence[Evidence],
    lasting: str,
    groups: Sequence[GroupLoad] = (),
) -> Finding:
    users = "; ".join(f"{group.name} used {group.cpus:g} CPUs" for group in groups)
    return Finding(
        code=code,
        subject=code.partition(".")[2],
        severity=severity,
        title=title,
        observed=f"within {fact.window_seconds:g} s on {fact.cpus} CPUs{': ' if users else ''}{users}",
        expected="little load besides the one that is measured",
        effect=Effect.MEASURED,
        confidence=Confidence.VERIFIED,
        evidence=(*evidence, *(line for group in groups for line in group.evidence)),
        remedy=Remedy(
            now="top -bn1 -w 120 | head -20   # who it is; systemd-cgtop for containers and services",
            lasting=lasting,
            undo="Nothing to undo.",
            cost="None.",
            risk=Risk.R0,
            restarts="nothing",
            verify_agent="host.load",
        ),
    )
