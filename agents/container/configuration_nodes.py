"""Judgement on the GPU nodes that a container's configuration gives to it: can its own rules allow them at all?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.container.config_diff import Edit
from gapline.agents.container.configuration_fact import NVIDIA_MAJOR, Configuration, Form, GivenNode
from gapline.agents.container.device_policy import DevicePolicy
from gapline.agents.container.device_rule import Device
from gapline.agents.container.policy_layers import policy_of
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

DYNAMIC_MAJORS = (*range(234, 255), *range(384, 512))
"""What the kernel gives to drivers that ask for any character major (fs/char_dev.c, find_dynamic_major)."""

_UNNAMED = 2**31 - 2  # stands for every major that no rule names: the answer is the same for all of them
_FIXED_MINORS = {"nvidiactl": 255}  # nv-chardev-numbers.h
_FIXED = re.compile(r"/dev/(nvidiactl|nvidia(\d+))")
_UVM = "/dev/nvidia-uvm"

CODES = (
    Code(
        code="config.node_denied",
        title="A GPU node is given to the container, but no rule allows it",
        meaning="The node appears inside, with good modes, and opening it still fails with EPERM. With nvidia-uvm "
        "denied, nvidia-smi works and CUDA does not.",
        yields_to="pair.device_chain",  # which knows the driver's majors, and asks inside
    ),
)


def findings(fact: Configuration) -> Iterator[Finding]:
    """One finding for the nodes with the fixed major and one for nvidia-uvm."""
    denied: dict[str, list[GivenNode]] = {}
    for node in fact.gpu_nodes:
        if allows_node(fact, node) is False:
            denied.setdefault("nvidia-uvm" if node.host_path == _UVM else "nvidia", []).append(node)
    for subject, nodes in denied.items():
        yield _node_denied(fact, subject, nodes)


def allows_node(fact: Configuration, node: GivenNode) -> bool | None:
    """Whether the rules can allow a GPU node, whatever major it has; None for nodes that this cannot say of."""
    if fixed := _FIXED.fullmatch(node.host_path):
        minor = _FIXED_MINORS.get(fixed[1], int(fixed[2] or 0))
        policy, device = _policy_for(fact, node, Device("c", NVIDIA_MAJOR, minor))
        return policy.allows(device)
    if node.host_path != _UVM:
        return None
    policy, unnamed = _policy_for(fact, node, Device("c", _UNNAMED, 0))
    named = {rule.major for rule in policy.active if rule.major in DYNAMIC_MAJORS}
    answers = {policy.allows(device) for device in (unnamed, *(Device("c", major, 0) for major in named if major))}
    return False if answers == {False} else None


def _policy_for(fact: Configuration, node: GivenNode, device: Device) -> tuple[DevicePolicy, Device]:
    """The policy on a host where the node is that device."""
    return policy_of(fact, lambda path: device if path == node.host_path else None), device


def _node_denied(fact: Configuration, subject: str, nodes: list[GivenNode]) -> Finding:
    paths = list(dict.fromkeys(node.host_path for node in nodes))
    rules = tuple(fact.raw_line("lxc.cgroup2.devices.allow", f"{path} rw") for path in paths)
    whose = "a major that the driver gets at load time" if subject == "nvidia-uvm" else f"major {NVIDIA_MAJOR}"
    return Finding(
        code="config.node_denied",
        subject=subject,
        severity=Severity.CRITICAL,
        title=f"{', '.join(paths)}: given to the container, but no device rule covers it",
        observed=f"{len(fact.device_rules())} device rules, none of which matches {whose}",
        expected=f"a rule that allows it, best by path: `{rules[0]}`",
        effect=Effect.BREAKS,
        confidence=Confidence.INFERRED,
        evidence=(*(node.setting.at for node in nodes), *(s.at for s in fact.device_rules())),
        origin="LXC, src/lxc/cgroups/cgfsng.c and cgroup2_devices.c",
        remedy=Remedy(
            now=live_fix(fact.name, paths),
            lasting=lasting_fix(fact, paths),
            undo="Remove the added lines.",
            cost="None beyond the restart; the container gets exactly the nodes it was given.",
            risk=Risk.R2,
            restarts="the container; nothing for the live repair",
            verify_agent="container.configuration",
            diff=fact.diff(Edit(fact.line_after_rules(), add=rules)),
        ),
    )


def live_fix(name: str, paths: list[str]) -> str:
    """The repair of a running container's policy, lost at its next start."""
    look_up = "$(awk '$2 == \"nvidia-uvm\" {print $1}' /proc/devices)"
    majors = dict.fromkeys(look_up if path.startswith(_UVM) else str(NVIDIA_MAJOR) for path in paths)
    return "As root on the host, at once and without a restart: " + "; ".join(
        f'lxc-cgroup -n {name} devices.allow "c {major}:* rwm"' for major in majors
    )


def lasting_fix(fact: Configuration, paths: list[str]) -> str:
    """The repair that survives the next renumbering."""
    by_path = f"apply the diff to {fact.path}: rules by path are looked up at every start (LXC 5.0.0 and later)"
    if fact.form is Form.LXC:
        return by_path[0].upper() + by_path[1:] + "."
    free = [n for n in range(256) if fact.setting(f"dev{n}") is None]
    entries = " ".join(f"-dev{n} {path},mode=0666" for n, path in zip(free, paths, strict=False))
    return (
        f"Proxmox VE 8.1 and later (pve-container 5.0.7): `pct set {fact.name} {entries}`, and "
        "remove the mount entry of the same node. A missing node then keeps the container from starting, so load the "
        f"modules first. Otherwise {by_path}."
    )
