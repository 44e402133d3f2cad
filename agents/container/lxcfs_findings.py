"""Judgements on lxcfs in a container."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.lxcfs_reading import Lxcfs
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.lxcfs"
_ONLINE = "/sys/devices/system/cpu/online"

CODES = (
    Code(
        code="lxcfs.dead",
        title="lxcfs died, and files that it stood in for cannot be read",
        meaning="/proc/meminfo, /proc/stat and others give 'Transport endpoint is not connected' in every container "
        "that "
        "was started before. Whatever asks for memory or CPUs fails or falls back to guesses.",
    ),
    Code(
        code="lxcfs.inconsistent",
        title="The number of CPUs depends on where a program looks",
        meaning="lxcfs cuts /proc/stat and /proc/cpuinfo to what the container may use; /sys/devices/system/cpu/online "
        "is "
        "cut by newer versions only, and not by a quota. Thread pools that are sized from it are too large.",
    ),
    Code(
        code="lxcfs.absent",
        title="The container is limited and sees the host's memory and CPUs",
        meaning="Without lxcfs /proc/meminfo and /proc/stat are the host's. What sizes itself by them asks for more "
        "than "
        "the limit allows, and is throttled or killed.",
    ),
)


def dead(fact: Lxcfs) -> Iterator[Finding]:
    """Files that lxcfs stands in for and that cannot be read."""
    failed = [file for file in fact.files if file.failure and _mount(fact, file.path)]
    if failed:
        yield Finding(
            code="lxcfs.dead",
            subject="lxcfs",
            severity=Severity.HIGH,
            title=f"lxcfs does not answer for {len(failed)} files of the container",
            observed="; ".join(f"{file.path}: {file.failure}" for file in failed)[:400],
            expected="files that can be read",
            effect=Effect.BREAKS,
            confidence=Confidence.VERIFIED,
            evidence=tuple(file.evidence for file in failed),
            remedy=_remedy(
                "On the host: `systemctl status lxcfs`, then `systemctl restart lxcfs`, and restart this container: "
                "its "
                "mounts belong to the process that died.",
                "Find out why it died (`journalctl -u lxcfs`); keep the package lxcfs up to date.",
            ),
        )


def _mount(fact: Lxcfs, path: str) -> bool:
    return any(path == point or path.startswith(f"{point}/") for point in fact.mounted)


def inconsistent(fact: Lxcfs) -> Iterator[Finding]:
    """Two places that count different numbers of CPUs."""
    online = fact.file(_ONLINE)
    if fact.mounted and online and fact.cpus and fact.online and fact.cpus != fact.online:
        yield Finding(
            code="lxcfs.inconsistent",
            subject="cpus",
            severity=Severity.LOW,
            title=f"/proc/stat shows {fact.cpus} CPUs, {_ONLINE} {fact.online}",
            observed=f"{fact.cpus} in /proc/stat, {fact.online} online, {fact.allowed or 'an unknown number'} by "
            "affinity",
            expected="one number",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=(fact.cpus_evidence, online.evidence),
            origin="lxc/lxcfs issue 401",
            remedy=_remedy(
                f"Set thread counts by hand, such as OMP_NUM_THREADS={min(fact.cpus, fact.online)} for the engine.",
                "A newer lxcfs on the host; and CPUs by `cores` (a cpuset) rather than by `cpulimit` (a quota).",
            ),
        )


def absent(fact: Lxcfs) -> Iterator[Finding]:
    """Limits, and nothing that shows them."""
    if not fact.mounted and fact.limits:
        yield Finding(
            code="lxcfs.absent",
            subject="lxcfs",
            severity=Severity.LOW,
            title="The container is limited, and nothing in it shows that",
            observed=", ".join(f"{limit.name} {limit.value}" for limit in fact.limits) + "; no mount of lxcfs",
            expected="lxcfs over /proc/meminfo and /proc/stat, or no limit",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=tuple(limit.evidence for limit in fact.limits),
            origin="lxcfs, README: without it /proc shows the host's values",
            remedy=_remedy(
                "On the host: `apt install lxcfs`, see that `systemctl is-active lxcfs` says active, and restart the "
                "container. Until then set sizes of pools and caches by hand.",
                "`systemctl enable lxcfs`; plain LXC includes its hook by /usr/share/lxc/config/common.conf.d.",
            ),
        )


def _remedy(now: str, lasting: str) -> Remedy:
    return Remedy(
        now=now,
        lasting=lasting,
        undo="Take the setting back, or remove the package, and restart the container.",
        cost="The container is down while it restarts.",
        risk=Risk.R2,
        restarts="the container",
        verify_agent=AGENT_ID,
    )
