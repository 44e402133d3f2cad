"""The scripts of the container agents against real containers, and the model of LXC's rules against the kernel."""

from __future__ import annotations

import errno
import os
import random
import shutil

import pytest

from gapline.agents.container.access_test import ACCESS, AccessTest, NodeAccess, access_test
from gapline.agents.container.device_policy import build_policy
from gapline.agents.container.device_rule import Device, PathRule, Rule, Whole, parse_rule
from gapline.agents.container.gpu_processes import PROCESSES, ContainerProcesses, container_processes
from gapline.orchestrator.model.capture import Capture
from tests.lab.conftest import require_lxc
from tests.lab.lxc import fleet
from tests.lab.lxc.container import LabContainer
from tests.lab.lxc.lab import Layout, LxcLab

pytestmark = pytest.mark.lab

UVM = "/dev/nvidia-uvm"
SEED = 20  # of the random lists; any other must do as well
ROUNDS = 60


def access(lab: LxcLab, container: LabContainer) -> AccessTest:
    """The access test, inside the container."""
    done = lab.inside(container.name, ACCESS.text)
    return access_test(Capture("ct", ACCESS.key, "gpu-access", done.stdout.encode()))


def node(test: AccessTest, path: str) -> NodeAccess:
    """What it says about one node."""
    return next(node for node in test.nodes if node.path == path)


def processes(lab: LxcLab, container: LabContainer, cgroup: str) -> ContainerProcesses:
    """The process script, on the lab's host."""
    setting = f"INIT={lab.init_pid(container.name)} CGROUP={cgroup}\n"
    done = lab.run("sh", "-c", setting + PROCESSES.text)
    return container_processes(Capture("ct", PROCESSES.key, "gpu-processes", done.stdout.encode()))


@pytest.mark.parametrize(
    ("container", "usable"),
    [(fleet.RIGHT, True), (fleet.STALE, False), (fleet.STALE_UNPRIVILEGED, True)],
    ids=["right", "stale", "stale unprivileged"],
)
def test_dash_tells_the_truth(lxc_lab: LxcLab, container: LabContainer, *, usable: bool) -> None:
    """It is taken for what it is although it is a copy called sh, and the policy shows."""
    test = access(lxc_lab, container)
    assert test.shell == "dash"
    assert node(test, UVM).granted is usable
    assert node(test, "/dev/nvidia0").granted is True


def test_busybox_is_not_believed(lxc_lab: LxcLab) -> None:
    """A hard link called sh: recognised, and its answer for a denied node is no answer."""
    test = access(lxc_lab, fleet.STALE_BUSYBOX)
    assert test.shell == "busybox"
    assert node(test, UVM).granted is None


def test_access_test_creates_nothing(lxc_lab: LxcLab) -> None:
    """The same files below /dev as before, in a container with nodes and in one without."""
    for container in (fleet.STALE, fleet.WITHOUT_GPU):
        before = lxc_lab.inside(container.name, "ls -l /dev").stdout
        access(lxc_lab, container)
        assert lxc_lab.inside(container.name, "ls -l /dev").stdout == before


def test_engine_and_its_limits(lxc_lab: LxcLab) -> None:
    """The process that holds the node is found from the host by its cgroup, with its own limit and capabilities."""
    seen = processes(lxc_lab, fleet.RIGHT_BUSYBOX, f"/lxc/{fleet.RIGHT_BUSYBOX.name}")
    assert seen.searched
    assert [process.inner_pid == 1 for process in seen.gpu] == [False]
    limit = seen.gpu[0].limit("Max locked memory")
    assert limit is not None
    assert limit.soft == fleet.LOW_MEMLOCK
    assert seen.gpu[0].locks_freely
    assert seen.init.privileged


def test_no_engine_where_the_node_is_denied(lxc_lab: LxcLab) -> None:
    """Nobody holds a node there; the unprivileged neighbour is not privileged."""
    assert processes(lxc_lab, fleet.STALE, f"/lxc/{fleet.STALE.name}").gpu == ()
    mapped = processes(lxc_lab, fleet.STALE_UNPRIVILEGED, f"/lxc/{fleet.STALE_UNPRIVILEGED.name}")
    assert not mapped.init.privileged
    assert [process.locks_freely for process in mapped.gpu] == [False]


def test_plain_layout(plain_lab: LxcLab) -> None:
    """LXC's own cgroup name."""
    assert len(processes(plain_lab, fleet.PLAIN_RIGHT, f"/lxc.payload.{fleet.PLAIN_RIGHT.name}").gpu) == 1


PROBE = """#!/bin/sh
for n in uvm ctl null; do
  if e=$( ( : <>/dev/$n ) 2>&1 ); then e=ok; fi
  echo "$n rw ${e##*: }"
  if e=$( ( : </dev/$n ) 2>&1 ); then e=ok; fi
  echo "$n r ${e##*: }"
done >/result
"""
DEVICES = {"uvm": Device("c", 508, 0), "ctl": Device("c", 195, 255), "null": Device("c", 1, 3)}
BASE = """\
lxc.rootfs.path = /var/lib/lxc/probe/rootfs
lxc.uts.name = probe
lxc.net.0.type = empty
lxc.autodev = 0
lxc.console.path = none
lxc.init.cmd = /bin/probe
"""


def test_model_agrees_with_the_kernel() -> None:
    """Random lists, each really started: the kernel's answers for three nodes, and the lists that it refuses."""
    require_lxc()
    lists = random.Random(SEED)  # noqa: S311 - repeatable on purpose
    with LxcLab((), Layout.PLAIN) as lab:
        _make_probe(lab)
        for _ in range(ROUNDS):
            _compare(lab, [_line(lists) for _ in range(lists.randint(0, 6))])


def _make_probe(lab: LxcLab) -> None:
    root = lab.path("/var/lib/lxc/probe/rootfs")
    for folder in ("bin", "dev", "proc", "sys"):
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/sh")
    (root / "bin/probe").write_text(PROBE)
    (root / "bin/probe").chmod(0o755)
    for name, device in DEVICES.items():
        os.mknod(root / "dev" / name, 0o020666, os.makedev(device.major, device.minor))


def _line(lists: random.Random) -> tuple[str, str]:
    word = lists.choice(["allow", "deny"])
    numbers = f"{lists.choice(['*', '1', '195', '508'])}:{lists.choice(['*', '0', '3', '255'])}"
    rule = f"{lists.choice('abc')} {numbers} {lists.choice(['rwm', 'rwm', 'rw', 'mrw', 'r', 'w'])}"
    return word, lists.choice([rule, rule, rule, rule, "a", "a *:* rwm", "c 195 rwm"])


def _compare(lab: LxcLab, lines: list[tuple[str, str]]) -> None:
    rules = "".join(f"lxc.cgroup2.devices.{word} = {value}\n" for word, value in lines)
    lab.config("probe").write_text(BASE + rules)
    parsed = (parse_rule(value, allow=word == "allow") for word, value in lines)
    model = build_policy([rule for rule in parsed if isinstance(rule, Whole | Rule | PathRule)], lambda _: None)
    result = lab.path("/var/lib/lxc/probe/rootfs/result")
    result.unlink(missing_ok=True)
    lab.run("lxc-start", "-F", "-n", "probe", check=False)
    assert result.exists() is (model.refused is None), lines
    answers = result.read_text().splitlines() if result.exists() else []
    for name, access, answer in (line.split(" ", 2) for line in answers):
        allowed = answer != os.strerror(errno.EPERM)
        assert model.allows(DEVICES[name], access) is allowed, (lines, name, access, answer)
