"""The LXC lab itself: what Gapline is to find there is really so."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.lab.conftest import require_lxc
from tests.lab.lxc import fleet
from tests.lab.lxc.container import LabContainer
from tests.lab.lxc.lab import LxcLab

pytestmark = pytest.mark.lab

# The engine's view: one open for reading and writing, and the kernel's word for what was wrong with it.
_OPEN = "true <>/dev/{node}"
_DENIED, _NO_DRIVER, _NO_DEVICE = map(os.strerror, (errno.EPERM, errno.ENXIO, errno.ENODEV))


def opens(lab: LxcLab, container: LabContainer, node: str) -> str:
    """The error of an open inside the container; empty when it succeeds."""
    return lab.inside(container.name, _OPEN.format(node=node)).stderr


def readable(lab: LxcLab, container: LabContainer, node: str) -> bool:
    """What the container's own shell says about the node."""
    return lab.inside(container.name, f"test -r /dev/{node} && test -w /dev/{node}").returncode == 0


@pytest.mark.parametrize(
    "container", [fleet.RIGHT, fleet.RIGHT_BUSYBOX, fleet.STALE_UNPRIVILEGED], ids=lambda c: c.name
)
def test_allowed_major_opens(lxc_lab: LxcLab, container: LabContainer) -> None:
    """The right major, or Proxmox VE's deny-list of an unprivileged container: a real driver answers."""
    assert opens(lxc_lab, container, "nvidia-uvm-tools") == ""
    assert _NO_DEVICE in opens(lxc_lab, container, "nvidia-uvm")
    assert readable(lxc_lab, container, "nvidia-uvm")


@pytest.mark.parametrize("container", [fleet.STALE, fleet.STALE_BUSYBOX], ids=lambda c: c.name)
def test_stale_major_is_denied_while_the_others_work(lxc_lab: LxcLab, container: LabContainer) -> None:
    """The incident: EPERM for uvm alone; nvidia0 gets past the policy, to a major that nobody owns here."""
    assert _DENIED in opens(lxc_lab, container, "nvidia-uvm")
    assert _DENIED in opens(lxc_lab, container, "nvidia-uvm-tools")
    assert _NO_DRIVER in opens(lxc_lab, container, "nvidia0")
    assert _NO_DRIVER in opens(lxc_lab, container, "nvidiactl")


def test_only_dash_is_honest_about_access(lxc_lab: LxcLab) -> None:
    """As root, busybox calls a denied node readable; dash asks the kernel."""
    assert not readable(lxc_lab, fleet.STALE, "nvidia-uvm")
    assert readable(lxc_lab, fleet.STALE, "nvidia0")
    assert readable(lxc_lab, fleet.STALE_BUSYBOX, "nvidia-uvm")


def test_engine_holds_the_device_where_it_may(lxc_lab: LxcLab) -> None:
    """The process that plays the engine has a uvm node open in the right container and not in the stale one."""
    script = "ls -l /proc/[0-9]*/fd 2>/dev/null"
    assert "/dev/nvidia-uvm" in lxc_lab.inside(fleet.RIGHT.name, script).stdout
    assert "/dev/nvidia-uvm" not in lxc_lab.inside(fleet.STALE.name, script).stdout


def test_limits_and_maps_are_the_kernels(lxc_lab: LxcLab) -> None:
    """Id map, rlimit, seccomp and dropped capabilities of the init processes are real."""
    right, mapped = lxc_lab.init_pid(fleet.RIGHT_BUSYBOX.name), lxc_lab.init_pid(fleet.STALE_UNPRIVILEGED.name)
    assert lxc_lab.path(f"/proc/{mapped}/uid_map").read_text().split() == ["0", "100000", "65536"]
    limits = lxc_lab.path(f"/proc/{right}/limits").read_text().splitlines()
    assert next(line for line in limits if "locked memory" in line).split()[3:5] == [str(fleet.LOW_MEMLOCK)] * 2
    status = dict(line.split(":\t", 1) for line in lxc_lab.path(f"/proc/{right}/status").read_text().splitlines())
    assert status["Seccomp"] == "2"
    sys_module = 16
    assert not int(status["CapBnd"], 16) >> sys_module & 1


def test_frozen_container_hangs_whoever_enters(lxc_lab: LxcLab) -> None:
    """lxc-attach does not come back by itself: it ends by its time-out."""
    timed_out = 124
    name = fleet.FROZEN.name
    assert lxc_lab.run("timeout", "2", "lxc-attach", "-n", name, "--", "true", check=False).returncode == timed_out


def test_stopped_and_shell_less_containers_say_so(lxc_lab: LxcLab) -> None:
    """The two words of lxc-attach that tell them apart."""
    assert "init pid" in lxc_lab.inside(fleet.STOPPED.name, "true").stderr
    not_found = 127
    assert lxc_lab.inside(fleet.WITHOUT_SHELL.name, "true").returncode == not_found


def test_live_fix_works_at_once_and_only_until_the_next_start() -> None:
    """`lxc-cgroup … devices.allow` replaces the running program; the configuration still names the old major."""
    require_lxc()
    with LxcLab((fleet.STALE,)) as lab:
        lab.run("lxc-cgroup", "-n", fleet.STALE.name, "devices.allow", f"c {lab.uvm_major}:* rwm")
        assert opens(lab, fleet.STALE, "nvidia-uvm-tools") == ""
        lab.restart(fleet.STALE.name)
        assert _DENIED in opens(lab, fleet.STALE, "nvidia-uvm")


def test_passthrough_entry_survives_what_literal_majors_do_not() -> None:
    """A `dev0:` entry is resolved at every start."""
    require_lxc()
    with LxcLab((fleet.STALE,)) as lab:
        config = lab.config(fleet.STALE.name)
        config.write_text("dev0: /dev/nvidia-uvm,mode=0666\n" + config.read_text())
        lab.restart(fleet.STALE.name)
        assert _NO_DEVICE in opens(lab, fleet.STALE, "nvidia-uvm")
        record = lab.path(f"/var/lib/lxc/{fleet.STALE.name}/passthrough/devices").read_text()
        assert record == f"c:{lab.uvm_major}:0:/dev/nvidia-uvm\n"


def test_plain_layout_denies_an_unprivileged_container_too(plain_lab: LxcLab) -> None:
    """No Proxmox, no cleared list: there a stale rule blocks, and the cgroup has LXC's own name."""
    assert _DENIED in opens(plain_lab, fleet.PLAIN_STALE, "nvidia-uvm")
    assert opens(plain_lab, fleet.PLAIN_RIGHT, "nvidia-uvm-tools") == ""
    assert (plain_lab.cgroup / f"lxc.payload.{fleet.PLAIN_STALE.name}").is_dir()


def test_nothing_is_left_behind() -> None:
    """After the lab: the same mounts as before, no cgroup, no process, no device node, no file."""
    require_lxc()
    mounts, devices = Path("/proc/self/mountinfo").read_text(), sorted(Path("/dev").iterdir())
    with LxcLab((fleet.STALE, fleet.STALE_UNPRIVILEGED)) as lab:
        processes = [pid for file in lab.cgroup.rglob("cgroup.procs") for pid in file.read_text().split()]
        least = 6  # PID 1, sshd, two monitors and two inits
        assert len(processes) >= least
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert sorted(Path("/dev").iterdir()) == devices
    assert not lab.cgroup.exists()
    assert not lab.folder.exists()
    assert [pid for pid in processes if Path("/proc", pid).exists()] == []
