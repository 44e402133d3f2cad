"""Judgements on what a configuration asks for and the kernel does not enforce, or the other way round."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.byte_size import size
from gapline.agents.container.cgroup_files import Amount
from gapline.agents.container.cgroup_reading import CgroupLimits
from gapline.agents.container.configuration_fact import Configuration, Form
from gapline.agents.container.cpuset_fact import Cpuset
from gapline.agents.pair import wanted
from gapline.agents.pair.wanted import Wanted
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "pair.configuration_in_force"
_PVE = "pve-container, src/PVE/LXC.pm and src/PVE/LXC/Config.pm; LXC, src/lxc/cgroups/cgfsng.c"
_COPIED = ("lxc.cgroup2.devices.", "lxc.prlimit.", "lxc.mount.entry", "lxc.cap.drop", "lxc.apparmor.profile")
_WHAT = {
    "in_force.memory": "memory limit",
    "in_force.swap": "swap limit",
    "in_force.cpu_quota": "CPU quota",
    "in_force.cores": "number of CPUs",
}
_PAGE = 65536  # memory.max is cut to whole pages, of at most 64 KiB

CODES = (
    Code(
        code="in_force.memory",
        title="The memory limit in force is not the configured one",
        meaning="Somebody edited the file by hand, or wrote to the cgroup: `pct set` changes both.",
    ),
    Code(
        code="in_force.swap",
        title="The swap limit in force is not the configured one",
        meaning="Somebody edited the file by hand, or wrote to the cgroup: `pct set` changes both.",
    ),
    Code(
        code="in_force.cpu_quota",
        title="The CPU quota in force is not the configured one",
        meaning="A quota that only the kernel knows goes with the next start; one that only the file knows "
        "comes with it.",
    ),
    Code(
        code="in_force.cores",
        title="The container has another number of CPUs than configured",
        meaning="`cores: N` makes Proxmox VE pick N CPUs. Another number means that the file was edited by hand, that "
        "CPUs went offline, or that a cgroup above allows fewer.",
    ),
    Code(
        code="in_force.raw_lines",
        title="Raw lines of the configuration came after the container's last start",
        meaning="Proxmox VE writes `lxc.` lines into /var/lib/lxc/ID/config when it starts the container, and never "
        "applies them to one that runs: device rules, limits and mounts wait for the restart.",
    ),
)


def memory(fact: Configuration, limits: CgroupLimits) -> Iterator[Finding]:
    """memory.max."""
    yield from _bytes(fact, "in_force.memory", wanted.memory(fact), limits.memory_max)


def swap(fact: Configuration, limits: CgroupLimits) -> Iterator[Finding]:
    """memory.swap.max."""
    yield from _bytes(fact, "in_force.swap", wanted.swap(fact), limits.swap_max)


def _bytes(fact: Configuration, code: str, asked: Wanted | None, now: Amount | None) -> Iterator[Finding]:
    if asked is None or now is None:
        return
    both = asked.value is not None and now.value is not None
    if asked.value == now.value or (both and abs((asked.value or 0) - (now.value or 0)) < _PAGE):
        return
    less = now.value is not None and (asked.value is None or now.value < asked.value)
    yield _finding(fact, code, (_size(asked.value), _size(now.value)), (asked.at, now.evidence), less=less)


def cpu_quota(fact: Configuration, limits: CgroupLimits) -> Iterator[Finding]:
    """cpu.max."""
    asked, now = wanted.cpus(fact), limits.cpu_quota
    if asked is None or now is None or asked.value == now.cpus:
        return
    if asked.value and now.cpus and abs(asked.value - now.cpus) * now.period_us < 2:  # noqa: PLR2004  # rounding
        return
    less = now.cpus is not None and (asked.value is None or now.cpus < asked.value)
    told = tuple("none" if one is None else f"{one:g} CPUs" for one in (asked.value, now.cpus))
    yield _finding(fact, "in_force.cpu_quota", (told[0], told[1]), (asked.at, now.evidence), less=less)


def cores(fact: Configuration, cpuset: Cpuset) -> Iterator[Finding]:
    """How many CPUs are effective; all of the host's where more are asked for."""
    asked = wanted.cores(fact)
    if asked is None or asked.value is None:
        return
    count, due = len(cpuset.effective.numbers), min(int(asked.value), len(cpuset.online.numbers))
    if count != due:
        told = (f"{due} CPUs", f"{count} CPUs")
        yield _finding(fact, "in_force.cores", told, (asked.at, cpuset.effective.evidence), less=count < due)


def raw_lines(fact: Configuration) -> Iterator[Finding]:
    """Lines that the generated file does not have."""
    if fact.form is not Form.PROXMOX or fact.generated is None:
        return
    there = {(s.key, *s.value.split()) for s in fact.generated}
    late = [s for s in fact.raw if s.key.startswith(_COPIED) and s.value and (s.key, *s.value.split()) not in there]
    if late:
        yield Finding(
            code="in_force.raw_lines",
            subject="lxc.",
            severity=Severity.MEDIUM,
            title=f"{len(late)} raw lines of the configuration wait for a restart of the container",
            observed="; ".join(s.at.text for s in late)[:300],
            expected="the same lines in the file that the last start made",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=tuple(s.at for s in late),
            origin=_PVE,
            remedy=_remedy(fact),
        )


def _finding(
    fact: Configuration,
    code: str,
    told: tuple[str, str],
    at: tuple[Evidence | None, Evidence],
    *,
    less: bool,
) -> Finding:
    asked, now = told
    what = _WHAT[code]
    return Finding(
        code=code,
        subject=what,
        severity=Severity.MEDIUM if less else Severity.LOW,
        title=f"The {what} in force is {now}, the configuration says {asked}",
        observed=now,
        expected=asked,
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(one for one in at if one is not None),
        origin=_PVE,
        remedy=_remedy(fact),
    )


def _size(count: float | None) -> str:
    return "none" if count is None else size(int(count))


def _remedy(fact: Configuration) -> Remedy:
    proxmox = fact.form is Form.PROXMOX
    restart = f"pct reboot {fact.name}" if proxmox else f"lxc-stop -n {fact.name} && lxc-start -n {fact.name}"
    return Remedy(
        now=f"Decide which of the two is meant. `{restart}` brings the file into force.",
        lasting="Change settings by `pct set`, which applies to the running container what it can and keeps the rest "
        "under [pve:pending]; raw lines always need a restart."
        if proxmox
        else "Change the file, and restart the container.",
        undo="Put the old value into the file before the restart.",
        cost="The container's downtime.",
        risk=Risk.R2,
        restarts="the container",
        verify_agent=AGENT_ID,
    )
