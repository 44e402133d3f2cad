"""Judgements on a container's capabilities."""

from __future__ import annotations

from gapline.agents.container.capability_fact import Capabilities, Holder
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.capabilities"

CODES = (
    Code(
        code="capabilities.all_kept",
        title="A privileged container may load kernel modules and write to hardware",
        meaning="LXC drops CAP_SYS_MODULE and CAP_SYS_RAWIO by default. With both, in the initial user name space, "
        "root inside can do to the host whatever root can. A GPU needs neither.",
    ),
    Code(
        code="capabilities.no_nice",
        title="The engine has no CAP_SYS_NICE",
        meaning="It cannot raise its priority, nor move pages that it shares with others (MPOL_MF_MOVE_ALL); and "
        "Docker's default seccomp profile then refuses set_mempolicy and mbind, so binding to a NUMA node fails.",
    ),
    Code(
        code="capabilities.no_ptrace",
        title="The engine has no CAP_SYS_PTRACE, and the kernel asks for it",
        meaning="With kernel.yama.ptrace_scope 2 or 3 processes of one engine cannot fetch file descriptors of each "
        "other by pidfd_getfd(2), by which some of them share GPU memory. At 3 nobody can.",
    ),
)


def keeps_everything(fact: Capabilities) -> Finding:
    """Modules and raw I/O in the initial user name space."""
    return Finding(
        code="capabilities.all_kept",
        subject="bounding set",
        severity=Severity.LOW,
        title="The container keeps CAP_SYS_MODULE and CAP_SYS_RAWIO of the host",
        observed=f"{fact.bounding_evidence.text}; dropped: {', '.join(fact.dropped) or 'none'}",
        expected="LXC's default, which drops SYS_MODULE, SYS_RAWIO, SYS_TIME, MAC_OVERRIDE and MAC_ADMIN",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(fact.bounding_evidence,),
        origin="lxc.container.conf(5), lxc.cap.drop; capabilities(7)",
        remedy=_remedy(
            "Remove the empty `lxc.cap.drop` line from the container's configuration.",
            "The default list of LXC's common.conf then holds again at every start.",
            "Put the line back.",
            "Software inside can no longer load modules, which a container should not.",
        ),
    )


def lacks_nice(_: Capabilities, engine: Holder) -> Finding:
    """No priorities, and perhaps no NUMA policy."""
    return Finding(
        code="capabilities.no_nice",
        subject="SYS_NICE",
        severity=Severity.INFO,
        title=f"{engine.name} ({engine.pid}) has no CAP_SYS_NICE",
        observed=engine.evidence.text,
        expected="CAP_SYS_NICE, where the engine binds its memory to NUMA nodes",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(engine.evidence,),
        settled_by="`numactl -m0 true` in the place where the engine runs",
        remedy=_remedy(
            "In Docker: `--cap-add SYS_NICE`. In systemd: see CapabilityBoundingSet= of the unit.",
            "Keep the option in the compose file or the unit.",
            "Remove the option.",
            "The engine may raise its priority above others.",
        ),
    )


def lacks_ptrace(fact: Capabilities, engine: Holder) -> Finding:
    """No descriptors of siblings."""
    return Finding(
        code="capabilities.no_ptrace",
        subject="SYS_PTRACE",
        severity=Severity.LOW,
        title=f"{engine.name} ({engine.pid}) has no CAP_SYS_PTRACE, and ptrace_scope is {fact.ptrace_scope}",
        observed=f"{engine.evidence.text}; kernel.yama.ptrace_scope {fact.ptrace_scope}",
        expected="ptrace_scope 0 or 1, or the capability",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(engine.evidence,),
        settled_by="the engine's log: pidfd_getfd fails with EPERM when memory is shared between its workers",
        remedy=_remedy(
            "In Docker: `--cap-add SYS_PTRACE`; or on the host `sysctl kernel.yama.ptrace_scope=1` (3 stays until the "
            "next boot).",
            "Keep the option in the compose file, or the value in /etc/sysctl.d/.",
            "Remove the option; `sysctl kernel.yama.ptrace_scope=2`.",
            "Processes of the engine may look into those of the same container.",
        ),
    )


def _remedy(now: str, lasting: str, undo: str, cost: str) -> Remedy:
    return Remedy(
        now=now,
        lasting=lasting,
        undo=undo,
        cost=cost,
        risk=Risk.R2,
        restarts="the container that runs the engine",
        verify_agent=AGENT_ID,
    )
