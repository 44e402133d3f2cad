"""Judgements on who makes the device nodes before containers start."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.reboot.fact import NextBoot, NodeMaker, Nodes
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.problem import Problem, ProblemKind

_HOOKS = "/etc/pve/lxc"
CODES = (
    Code(
        code="next_boot.nodes_not_made",
        title="Nothing is known to make the device nodes at boot",
        meaning="Neither the kernel nor udev makes NVIDIA's nodes by itself; user space does, at the first use on the "
        "host. A container that starts before that gets none. nvidia-persistenced and nvidia-smi make the nodes of the "
        "GPUs, and only nvidia-modprobe -u (or a CUDA program) makes those of nvidia-uvm.",
    ),
    Code(
        code="next_boot.nodes_late",
        title="The device nodes may be made after containers have started",
        meaning="What makes them is a service or a cron job that nothing orders before the containers.",
    ),
)


def node_findings(fact: NextBoot) -> Iterator[Finding]:
    """Asked only where LXC is installed: a bare host makes its nodes when it needs them."""
    if not fact.containers:
        return
    missing = [kind for kind in Nodes if not _makers(fact, kind)]
    late = [kind for kind in Nodes if not any(maker.in_time for maker in _makers(fact, kind))]
    if missing and _HOOKS not in fact.unread:
        yield _finding(fact, "next_boot.nodes_not_made", missing, Severity.MEDIUM)
    elif late and not missing and _HOOKS not in fact.unread:
        yield _finding(fact, "next_boot.nodes_late", late, Severity.LOW)


def unseen_makers(fact: NextBoot) -> tuple[Problem, ...]:
    """Hooks of containers can make the nodes, and only root can read them."""
    known = all(any(maker.in_time for maker in _makers(fact, kind)) for kind in Nodes)
    if known or not fact.containers or _HOOKS not in fact.unread:
        return ()
    detail = f"{_HOOKS}: hooks of the containers, which can make the nodes, could not be read"
    return (Problem(kind=ProblemKind.DENIED, detail=detail, hint="Read as root."),)


def _makers(fact: NextBoot, kind: Nodes) -> tuple[NodeMaker, ...]:
    return tuple(maker for maker in fact.makers if kind in maker.makes)


def _finding(fact: NextBoot, code: str, kinds: list[Nodes], severity: Severity) -> Finding:
    shown = ", ".join(f"{maker.command} in {maker.file}" for maker in fact.makers)
    what = " and ".join(kinds)
    late = f"{what}: made at boot by something that may come too late"
    title = late if code == "next_boot.nodes_late" else f"Nothing seen makes {what} at boot"
    return Finding(
        code=code,
        subject=" and ".join(kind.name.lower() for kind in kinds),
        severity=severity,
        title=title,
        observed=shown or "no unit, udev rule, cron job, modprobe option or hook of a container names a maker of nodes",
        expected="nvidia-modprobe -c0 -u from a unit that is ordered before the containers",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.INFERRED,
        evidence=tuple(maker.evidence for maker in fact.makers) or (fact.looked,),
        settled_by="a reboot, then host.nvidia_driver before anything on the host uses a GPU",
        remedy=Remedy(
            now="Nothing while the nodes are there: ls -l /dev/nvidia*",
            lasting="A unit /etc/systemd/system/nvidia-nodes.service with Type=oneshot, "
            "ExecStart=/usr/bin/nvidia-modprobe -c0 -u, Before=pve-guests.service lxc.service and "
            "WantedBy=multi-user.target; then systemctl enable nvidia-nodes. nvidia-persistenced beside it makes the "
            "nodes of all GPUs.",
            undo="systemctl disable nvidia-nodes, and remove the file.",
            cost="none",
            risk=Risk.R1,
            restarts="nothing",
            verify_agent="host.next_boot",
        ),
    )
