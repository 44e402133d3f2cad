"""The labs as fixtures. Where one cannot run, its tests are skipped with the reason."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.lxc import fleet, host_cgroup
from tests.lab.lxc.lab import Layout, LxcLab
from tests.lab.vm.lab import VmLab, golden_image

_LXC_TOOLS = ("lxc-start", "lxc-attach", "sshd", "ssh-keygen", "busybox", "dash", "ldd", "perl", "ip", "unshare")


_VM_TOOLS = (
    "qemu-system-x86_64", "qemu-img", "mmdebstrap", "mke2fs", "gcc", "depmod", "modprobe", "ldd", "busybox", "dash",
    "ssh", "ssh-keygen", "patch",
)  # fmt: skip


def require_tools(*names: str) -> None:
    """Skip the test, naming what is missing."""
    if os.geteuid() != 0:
        pytest.skip("the labs need root: real namespaces, device nodes and containers")
    missing = [
        name for name in names if shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is None
    ]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (scripts/test --install brings them)")


def require_lxc() -> None:
    """Skip the test where the LXC lab cannot run."""
    require_tools(*_LXC_TOOLS)
    if host_cgroup.unified_mount() is None:
        pytest.skip("this machine has no cgroup2 hierarchy mounted")
    probe = "ip tuntap add dev lower mode tap && ip link add link lower name driver type macvtap"
    if subprocess.run(("unshare", "--net", "sh", "-c", probe), check=False, capture_output=True).returncode:
        pytest.skip("no private network with a macvtap device can be made here (the lab's stand-in for nvidia-uvm)")


@pytest.fixture(scope="session")
def lxc_lab() -> Iterator[LxcLab]:
    """A Proxmox-like host with the whole fleet; 140 is frozen."""
    require_lxc()
    with LxcLab(fleet.PROXMOX_FLEET) as lab:
        lab.freeze(fleet.FROZEN.name)
        yield lab
        lab.thaw(fleet.FROZEN.name)


@pytest.fixture(scope="session")
def plain_lab() -> Iterator[LxcLab]:
    """A host with LXC and without Proxmox VE."""
    require_lxc()
    with LxcLab((fleet.PLAIN_STALE, fleet.PLAIN_RIGHT), Layout.PLAIN) as lab:
        yield lab


@pytest.fixture(scope="session")
def vm_lab() -> Iterator[VmLab]:
    """A Proxmox-like host in a virtual machine, not booted yet."""
    require_tools(*_VM_TOOLS)
    if not Path("/etc/debian_version").exists() or platform.machine() != "x86_64":
        pytest.skip("the virtual machine is built from Debian's packages for x86-64, on a Debian of that kind")
    with VmLab(golden_image()) as lab:
        yield lab
