"""What a lab container is: its configuration in the form its host expects, and the kind of root it has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

GPU_NODES = ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
SHARED_MEMORY = "tmpfs dev/shm tmpfs rw,nosuid,nodev,mode=1777,create=dir"
"""Mounted by systemd where that is the init."""

FIRST_UID = 100_000  # where the id map of an unprivileged container starts on its host


class Root(StrEnum):
    """What is inside. The shell decides whether an access test tells the truth."""

    DASH = "dash"  # `test -r` asks the kernel: the device policy shows
    BUSYBOX = "busybox"  # as root its `test -r` never asks: a denied node looks readable
    NO_SHELL = "no_shell"  # an init and nothing else, as in a distroless image


@dataclass(frozen=True, slots=True, kw_only=True)
class LabContainer:
    """One container. `allowed` are raw device rules, as in ``c 195:* rwm``; ``{uvm}`` stands for the major of today."""

    name: str
    allowed: tuple[str, ...] = ()
    nodes: tuple[str, ...] = GPU_NODES
    unprivileged: bool = False
    root: Root = Root.DASH
    started: bool = True
    raw: tuple[tuple[str, str], ...] = ()

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """The LXC settings beyond the defaults, in file order."""
        rules = tuple(("lxc.cgroup2.devices.allow", rule) for rule in self.allowed)
        mounts = tuple(
            ("lxc.mount.entry", f"/dev/{node} dev/{node} none bind,optional,create=file") for node in self.nodes
        )
        return (*rules, *mounts, ("lxc.mount.entry", SHARED_MEMORY), *self.raw)


def proxmox_config(container: LabContainer) -> str:
    """`/etc/pve/lxc/ID.conf`."""
    head = (
        f"arch: amd64\ncores: 2\nhostname: ct{container.name}\nmemory: 2048\nostype: debian\n"
        f"rootfs: local:{container.name}/vm-{container.name}-disk-0.raw,size=8G\nswap: 512\n"
        f"unprivileged: {int(container.unprivileged)}\n"
    )
    return head + "".join(f"{key}: {value}\n" for key, value in container.settings)


def plain_config(container: LabContainer) -> str:
    """`/var/lib/lxc/NAME/config` as an administrator without Proxmox writes it."""
    id_map = f"{FIRST_UID} 65536"
    settings = (
        ("lxc.include", "/usr/share/lxc/config/common.conf"),
        ("lxc.rootfs.path", f"/var/lib/lxc/{container.name}/rootfs"),
        ("lxc.uts.name", container.name),
        ("lxc.net.0.type", "empty"),
        *((("lxc.idmap", f"u 0 {id_map}"), ("lxc.idmap", f"g 0 {id_map}")) if container.unprivileged else ()),
        *container.settings,
    )
    return "".join(f"{key} = {value}\n" for key, value in settings)
