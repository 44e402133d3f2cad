"""Judgements on a container's GPU nodes that need nothing but the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.container.access_test import Opening
from gapline.agents.container.node_fact import DeviceNodes
from gapline.agents.device_node import GROUPED, SHARED, DeviceNode
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.device_nodes"
_COMPUTE = re.compile(r"/dev/nvidia(?:ctl|-uvm|\d+)")
"""The nodes without which CUDA does not start. The files below nvidia-caps are closed on purpose."""
_DECIMAL_SLIP = 0o1232  # 666 taken for a decimal number

CODES = (
    Code(
        code="nodes.not_a_device",
        title="Something else lies where a GPU node should be",
        meaning="A file or a folder was made in place of the node: a bind mount with `create=file` whose source was "
        "missing at the start leaves an empty file, and `create=dir` or a tool that copies leaves others. Every open "
        "succeeds or fails for reasons that have nothing to do with the driver.",
    ),
    Code(
        code="nodes.mode",
        title="The mode of a GPU node keeps its users out",
        meaning="The driver's default is 0666 (NVreg_DeviceFileMode). In an unprivileged container root has no power "
        "over nodes that belong to the host's root, so there the mode decides for root, too.",
    ),
)


def findings(fact: DeviceNodes) -> Iterator[Finding]:
    """All findings on the nodes."""
    for node in fact.nodes:
        if _COMPUTE.fullmatch(node.path):
            yield from _misplaced(fact, node)
    yield from _closed(fact)


def _misplaced(fact: DeviceNodes, node: DeviceNode) -> Iterator[Finding]:
    access = fact.access(node.path)
    link_to_device = node.kind == "symbolic link" and (access is None or access.kind == "char-link")
    if node.is_character or link_to_device:
        return
    yield Finding(
        code="nodes.not_a_device",
        subject=node.path,
        severity=Severity.CRITICAL,
        title=f"{node.path} in the container is a {node.kind}, not a device node",
        observed=node.kind,
        expected="character special file",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(node.evidence, *((access.evidence,) if access else ())),
        remedy=Remedy(
            now=f"Make sure {node.path} exists on the host (nvidia-modprobe -c0 -u), stop the container, remove what "
            "lies at that path in its root file system, and start it again.",
            lasting="Let the host make its nodes before containers start, and give them as dev[n] entries (Proxmox VE) "
            "or as bind mounts without `optional`: a missing node then fails the start and leaves no file.",
            undo="Nothing to undo: what lies there is not used by the driver.",
            cost="The container's downtime.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


def _closed(fact: DeviceNodes) -> Iterator[Finding]:
    closed = [
        node for node in fact.nodes if _COMPUTE.fullmatch(node.path) and node.is_character and _is_closed(fact, node)
    ]
    for mode in sorted({node.mode for node in closed}):
        yield _mode(fact, [node for node in closed if node.mode == mode])


def _is_closed(fact: DeviceNodes, node: DeviceNode) -> bool:
    """Open to all, or to a group other than root's, is as meant. A mode that keeps even root out shows as EACCES."""
    access = fact.access(node.path)
    if access is not None and access.opening is Opening.EACCES:
        return True
    bits = node.permissions
    return bits & SHARED != SHARED and not (bits & GROUPED == GROUPED and node.gid != 0)


def _mode(fact: DeviceNodes, nodes: list[DeviceNode]) -> Finding:
    paths = " ".join(node.path for node in nodes)
    tests = [access for node in nodes if (access := fact.access(node.path))]
    root_too = any(access.granted is False for access in tests)
    root_fine = bool(tests) and all(access.granted for access in tests)
    slip = nodes[0].permissions == _DECIMAL_SLIP
    return Finding(
        code="nodes.mode",
        subject=f"mode {nodes[0].mode}",
        severity=Severity.MEDIUM if root_fine and not slip else Severity.HIGH,
        base_severity=Severity.HIGH,
        severity_reason="the container's root can use them; only its other users cannot"
        if root_fine and not slip
        else "",
        title=f"Mode {nodes[0].mode} keeps {'everybody' if root_too else 'all users but root'} away from the GPU",
        observed=f"mode {nodes[0].mode}, owner {nodes[0].uid}:{nodes[0].gid} as the host counts, on {paths}",
        expected="mode 0666, or 0660 with a group for those who may use the GPU"
        + ("; 1232 is the number 666 written in octal" if slip else ""),
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(*(node.evidence for node in nodes), *(access.evidence for access in tests)),
        remedy=Remedy(
            now=f"On the host: chmod 0666 {paths} (a bind mount shows the same node, at once).",
            lasting="Proxmox VE: add `,mode=0666` (or `,gid=` and `,mode=0660`) to the dev[n] entry. Elsewhere: "
            "'options nvidia NVreg_DeviceFileMode=0666' with the leading zero in /etc/modprobe.d of the host.",
            undo=f"chmod {nodes[0].mode} {paths} on the host.",
            cost="None; 0666 is the driver's own default.",
            risk=Risk.R1,
            restarts="nothing for chmod; the container for a changed dev[n] entry",
            verify_agent=AGENT_ID,
        ),
    )
