"""Judgements on the device nodes of the host: there, with the numbers of /proc/devices, and openable."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.char_major import CharMajor
from gapline.agents.device_node import GROUPED, SHARED, DeviceNode
from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

_VERIFY = "host.nvidia_driver"
_DECIMAL_SLIP = 0o1232  # 666 read as a decimal number

CODES = (
    Code(
        code="nvidia.node_missing",
        title="A device node of the driver is missing on the host",
        meaning="The nodes are made by user space on demand, not by the kernel, so after a boot they can be absent "
        "until something on the host uses a GPU. A container started before that gets none.",
    ),
    Code(
        code="nvidia.node_stale",
        title="A device node has numbers that the driver does not have",
        meaning="All majors but 195 are given out in the order in which drivers load. A node kept from another boot "
        "leads nowhere (ENXIO) or to another driver (Linux fs/char_dev.c; NVIDIA open-gpu-kernel-modules).",
    ),
    Code(
        code="nvidia.node_mode",
        title="A device node can be opened by root only",
        meaning="The driver makes its nodes with the module parameter NVreg_DeviceFileMode, 0666 by default. 666 "
        "without the leading zero is a decimal number and gives the octal mode 1232, which nobody can read.",
    ),
)


def node_findings(fact: NvidiaDriver) -> tuple[Finding, ...]:
    """Nothing where the driver is not loaded: then the nodes have no truth to be set against."""
    if fact.loaded is None:
        return ()
    return (*_missing(fact), *_stale(fact), *_closed(fact))


def _wanted(fact: NvidiaDriver) -> Iterator[tuple[str, CharMajor, int]]:
    """Path, major and minor of the nodes that CUDA needs (NVIDIA: nvidiactl is 195:255, uvm has minor 0)."""
    majors = fact.majors
    if "nvidiactl" in majors:
        yield "/dev/nvidiactl", majors["nvidiactl"], 255
    if "nvidia" in majors:
        for gpu in fact.gpus:
            if gpu.minor is not None and not gpu.excluded:
                yield f"/dev/nvidia{gpu.minor}", majors["nvidia"], gpu.minor
    if "nvidia-uvm" in majors:
        yield "/dev/nvidia-uvm", majors["nvidia-uvm"], 0


def _missing(fact: NvidiaDriver) -> Iterator[Finding]:
    for path, major, minor in _wanted(fact):
        if fact.node(path) is None:
            yield Finding(
                code="nvidia.node_missing",
                subject=path,
                severity=Severity.HIGH,
                title=f"{path} is missing on the host",
                observed="no such node",
                expected=f"character device {major.number}:{minor}",
                effect=Effect.BREAKS,
                confidence=Confidence.VERIFIED,
                evidence=(major.evidence,),
                remedy=_make_nodes(f"rm {path}"),
            )


def _stale(fact: NvidiaDriver) -> Iterator[Finding]:
    wanted = {path: (major, minor) for path, major, minor in _wanted(fact)}
    for node in fact.nodes:
        major, minor = wanted.get(node.path) or _dynamic(fact, node)
        if major is None or (node.is_character and node.numbers == (major.number, minor)):
            continue
        owners = fact.owners(node.major)
        yield Finding(
            code="nvidia.node_stale",
            subject=node.path,
            severity=Severity.CRITICAL,
            title=f"{node.path} leads to {_destination(node, owners)}, not to the driver",
            observed=_shown(node),
            expected=f"character device {major.number}:{minor} ({major.name})",
            effect=Effect.BREAKS,
            confidence=Confidence.VERIFIED,
            evidence=(node.evidence, major.evidence),
            remedy=_make_nodes(f"rm {node.path} && mknod {node.path} c {node.major} {node.minor}", f"rm {node.path}; "),
        )


def _dynamic(fact: NvidiaDriver, node: DeviceNode) -> tuple[CharMajor | None, int]:
    """The major that other nodes must have; their minor is taken as it is."""
    if node.path == "/dev/nvidia-uvm-tools":
        return fact.majors.get("nvidia-uvm"), 1
    if node.path.startswith("/dev/nvidia-caps/"):
        return fact.majors.get("nvidia-caps"), node.minor
    return None, 0


def _destination(node: DeviceNode, owners: tuple[str, ...]) -> str:
    if not node.is_character:
        return f"a {node.kind}"
    return " and ".join(owners) if owners else f"major {node.major}, which nobody holds"


def _shown(node: DeviceNode) -> str:
    return f"character device {node.major}:{node.minor}" if node.is_character else node.kind


def _closed(fact: NvidiaDriver) -> Iterator[Finding]:
    wanted = {path for path, _, _ in _wanted(fact)}
    closed = tuple(node for node in fact.nodes if node.path in wanted and node.is_character and not _open(node))
    for mode in sorted({node.mode for node in closed}):
        nodes = tuple(node for node in closed if node.mode == mode)
        slip = nodes[0].permissions == _DECIMAL_SLIP
        yield Finding(
            code="nvidia.node_mode",
            subject=f"mode {mode}",
            severity=Severity.CRITICAL if slip else Severity.HIGH,
            title="Nobody but root can open the GPU"
            + (": the driver was told 666 instead of 0666" if slip else "'s device nodes"),
            observed=f"mode {mode} on {', '.join(node.path for node in nodes)}",
            expected="mode 0666, or 0660 with a group for those who may use the GPU",
            effect=Effect.BREAKS,
            confidence=Confidence.VERIFIED,
            evidence=tuple(node.evidence for node in nodes),
            remedy=Remedy(
                now=f"chmod 0666 {' '.join(node.path for node in nodes)}",
                lasting="Set 'options nvidia NVreg_DeviceFileMode=0666' in /etc/modprobe.d (with the leading zero), or "
                "remove the option; then update-initramfs -u -k all. /proc/driver/nvidia/params shows DeviceFileMode "
                "in decimal: 438 is 0666.",
                undo=f"chmod {mode} {' '.join(node.path for node in nodes)}",
                cost="none; 0666 is the driver's own default",
                risk=Risk.R1,
                restarts="nothing; the module option applies at the next load of the module",
                verify_agent=_VERIFY,
            ),
        )


def _open(node: DeviceNode) -> bool:
    """Everybody may read and write it, or a group may: the latter is a deliberate restriction."""
    bits = node.permissions
    return bits & SHARED == SHARED or (bits & GROUPED == GROUPED and node.gid != 0)


def _make_nodes(undo: str, first: str = "") -> Remedy:
    return Remedy(
        now=f"{first}nvidia-modprobe -c0 -u   # once per GPU: -c MINOR",
        lasting="Run it at every boot before containers start: a oneshot unit with Before=pve-guests.service "
        "(Proxmox VE) or Before=lxc.service, or nvidia-persistenced together with nvidia-modprobe -u.",
        undo=undo,
        cost="none",
        risk=Risk.R1,
        restarts="containers that were started before",
        verify_agent=_VERIFY,
    )
