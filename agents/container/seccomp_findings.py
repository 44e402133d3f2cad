"""Judgements on filters for system calls."""

from __future__ import annotations

from gapline.agents.container.gpu_processes import GpuProcess
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.seccomp"

CODES = (
    Code(
        code="seccomp.off",
        title="System calls of the container are not filtered",
        meaning="LXC's list forbids loading modules, kexec and opening files by handle. It touches no call that CUDA, "
        "NCCL or NUMA policies make, so taking it away gains nothing.",
    ),
    Code(
        code="seccomp.further_filter",
        title="The engine runs behind a second filter, and without CAP_SYS_NICE",
        meaning="Docker's default profile allows set_mempolicy, mbind and get_mempolicy only with CAP_SYS_NICE; then "
        "binding the engine's memory to a NUMA node fails. A filter of systemd (SystemCallFilter=) can do it, too.",
    ),
)


def off(at: Evidence, *, privileged: bool) -> Finding:
    """Mode 0 of the init."""
    return Finding(
        code="seccomp.off",
        subject="init",
        severity=Severity.LOW if privileged else Severity.INFO,
        base_severity=Severity.LOW,
        severity_reason="" if privileged else "the container is unprivileged: what the filter forbids fails anyway",
        title="System calls of the container are not filtered",
        observed=at.text,
        expected="mode 2 with one filter, LXC's default",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(at,),
        origin="LXC, config/templates/common.seccomp: what the default profile forbids",
        remedy=Remedy(
            now="Nothing needs to be done for speed.",
            lasting="Remove the empty `lxc.seccomp.profile` line from the configuration; plain LXC includes "
            "/usr/share/lxc/config/common.conf.",
            undo="Put the line back.",
            cost="Software inside that loads modules or opens files by handle stops working.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


def further_filter(process: GpuProcess, init: Evidence) -> Finding:
    """More filters than the init, and nothing that lifts Docker's condition."""
    return Finding(
        code="seccomp.further_filter",
        subject="engine",
        severity=Severity.LOW,
        title=f"{process.name} ({process.pid}) runs behind a further filter, and without CAP_SYS_NICE",
        observed=f"{process.seccomp_filters} filters; {process.evidence[-1].text}",
        expected="NUMA policies that can be set",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.INFERRED,
        evidence=(process.evidence[-1], init),
        settled_by="`numactl -m0 true` in the place where the engine runs",
        remedy=Remedy(
            now="In Docker: start it with `--cap-add SYS_NICE`, which Docker's profile then honours.",
            lasting="Keep the option in the compose file; in systemd add the calls to SystemCallFilter= of the unit.",
            undo="Remove the option.",
            cost="The engine may raise its priority above others.",
            risk=Risk.R2,
            restarts="the engine",
            verify_agent=AGENT_ID,
        ),
    )
