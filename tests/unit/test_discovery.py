"""What a host says about itself: recorded-like text, hostile text and garbage."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapline.orchestrator.discovery.containers import CONTAINERS, DEVICES, Containers, State, containers
from gapline.orchestrator.discovery.identity import BOOT_ID, HOSTNAME, IDENTITY, LOADAVG, UPTIME, Identity, identity
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.run import TargetKind
from tests.unit.invented import DENIED, capture

PROC_DEVICES = "Character devices:\n  1 mem\n195 nvidia\n511 nvidia-uvm\n\nBlock devices:\n  7 loop\n259 nvidia-not\n"


def listed(text: str, devices: str = PROC_DEVICES) -> Containers:
    """What is made of the listing script's output."""
    return containers({"containers": capture(CONTAINERS, text), "devices": capture(DEVICES, devices)})


def met(said: str = "", **files: str) -> Identity:
    """What is made of the identity's sources."""
    sources = {"boot_id": BOOT_ID, "uptime": UPTIME, "loadavg": LOADAVG, "hostname": HOSTNAME}
    read = {name: capture(source, files.get(name, "")) for name, source in sources.items()}
    return identity({**read, "identity": capture(IDENTITY, said)})


def ct(name: str, state: str = "RUNNING", init: str = "4001", config: str | None = None) -> str:
    """The record of a container."""
    return f"ct|{name}|{state}|{init}|{config or f'/etc/pve/lxc/{name}.conf'}\n"


def test_identity_of_a_proxmox_host() -> None:
    """Everything it says is taken over, with its unit."""
    who = met(
        "user=root\nuid=0\nepoch=1780000000\npve=1\nhas=timeout\nhas=lxc-info\n",
        hostname="pve-x\n",
        boot_id="11111111-2222-3333-4444-555555555555\n",
        uptime="86400.52 1234.00\n",
        loadavg="1.50 0.75 0.25 2/300 999\n",
    )
    assert who.kind is TargetKind.PROXMOX_HOST
    assert who.hostname == "pve-x"
    assert who.boot_id == "11111111-2222-3333-4444-555555555555"
    assert (who.uptime_seconds, who.load) == (86400.52, (1.5, 0.75, 0.25))
    assert (who.user, who.root, who.epoch) == ("root", True, 1780000000)
    assert who.commands == ("lxc-info", "timeout")


def test_identity_says_only_what_was_said_once() -> None:
    """Two users, or a clock that is no number, are no user and no clock."""
    who = met(
        "user=a\nuser=b\nuid=1000\nepoch=soon\n", hostname="<b>\n", boot_id="none\n", uptime="1e9\n", loadavg="x\n"
    )
    assert who.kind is TargetKind.LINUX_HOST
    assert (who.user, who.root, who.epoch, who.hostname) == (None, False, None, "")
    assert (who.boot_id, who.uptime_seconds, who.load) == (None, None, None)


@given(st.binary(max_size=400), st.binary(max_size=100))
def test_identity_never_raises(said: bytes, other: bytes) -> None:
    """Whatever a target sends."""
    sources = {"boot_id": BOOT_ID, "uptime": UPTIME, "loadavg": LOADAVG, "hostname": HOSTNAME}
    read = {name: Capture("pve1", source.key, source.key, other) for name, source in sources.items()}
    identity({**read, "identity": Capture("pve1", IDENTITY.key, "identity", said)})


@pytest.mark.parametrize(
    ("lines", "cgroup"),
    [
        ("0::/lxc/129/ns/init.scope", "/lxc/129"),
        ("0::/lxc/129", "/lxc/129"),
        ("0::/lxc.payload.129/init.scope", "/lxc.payload.129"),
        ("12:devices:/lxc/129/ns\n1:name=systemd:/lxc/129/ns", "/lxc/129"),
        ("12:cpu,devices:/lxc.payload.129\n0::/", "/lxc.payload.129"),
        ("0::/lxc/129/ns\n12:devices:/other/lxc/129", "/lxc/129"),
        ("0::/lxc/1290/ns", ""),
        ("0::/user.slice", ""),
        ("garbage", ""),
    ],
)
def test_limit_cgroup_in_every_layout(lines: str, cgroup: str) -> None:
    """Proxmox VE's and LXC's own layout, unified and version 1; the unified one wins, another's never counts."""
    told = "".join(f"cg|129|{line}\n" for line in lines.split("\n"))
    (seen,) = listed(f"{ct('129')}{told}end\n").seen
    assert seen.cgroup == cgroup


@pytest.mark.parametrize(
    ("config", "counts"),
    [
        ("3:lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,optional,create=file", True),
        ("3:dev0: /dev/nvidia0,gid=44", True),
        ("3:lxc.cgroup2.devices.allow: c 195:* rwm", True),
        ("3:lxc.cgroup2.devices.allow: c 511:* rwm", True),
        ("3:lxc.cgroup.devices.allow = c 195:0 rwm", True),
        ("3:lxc.hook.mount = /usr/share/lxc/hooks/nvidia", True),
        ("3:lxc.environment = NVIDIA_VISIBLE_DEVICES", True),
        ("3:lxc.cgroup2.devices.allow: c 226:* rwm", False),
        ("3:lxc.cgroup2.devices.allow: c 259:* rwm", False),
        ("3:dev0: /dev/ttyUSB0", False),
        ("3:hostname: nvidia-docs", False),
        ("3:tags: nvidia_gpu", False),
        ("3:lxc.rootfs.path = dir:/var/lib/lxc/nvidia-old/rootfs", False),
        ("1:#was /dev/nvidia0 once", False),
        ("9:[before-upgrade]\ncf|129|10:dev0: /dev/nvidia0", False),
    ],
)
def test_what_makes_a_gpu_container(config: str, counts: bool) -> None:
    """A node, or a major that belongs to NVIDIA here; not a name, a note, a snapshot's section or a block device."""
    (seen,) = listed(f"{ct('129')}cf|129|{config}\nend\n").seen
    assert bool(seen.gpu) is counts


def test_gpu_process_maps_to_its_container_only() -> None:
    """129 is not 1290, and a process of the host belongs to nobody."""
    text = f"{ct('129')}{ct('1290')}gp|77|0::/lxc/1290/ns/app\ngp|78|0::/system.slice/x.service\nend\n"
    seen = {one.name: one.gpu for one in listed(text).seen}
    assert seen == {"129": "", "1290": "GPU process 77 maps to it"}


@pytest.mark.parametrize(
    ("record", "state", "init"),
    [
        (ct("5", "STOPPED", ""), State.STOPPED, ""),
        (ct("5", "FROZEN", "41"), State.FROZEN, "41"),
        (ct("5", "STARTING", "41"), State.CHANGING, ""),
        (ct("5", "UNKNOWN", ""), State.UNKNOWN, ""),
        (ct("5", "RUNNING", "٤١"), State.RUNNING, ""),
        (ct("5", "RUNNING", "0"), State.RUNNING, ""),
        (ct("5", "RUNNING", "1 2"), State.RUNNING, ""),
    ],
)
def test_states_and_inits(record: str, state: State, init: str) -> None:
    """Only a running or frozen container has an init, and only a number is one."""
    (seen,) = listed(f"{record}end\n").seen
    assert (seen.state, seen.init) == (state, init)


@pytest.mark.parametrize(
    "record",
    [
        ct("../../etc"),
        ct("a/b"),
        ct("-rf"),
        ct("a b"),
        ct("$(id)"),
        ct("x", config="/etc/x;id"),
        ct(""),
        "ct|5|RUNNING\n",
    ],
)
def test_hostile_names_are_no_containers(record: str) -> None:
    """A name goes into paths and commands; what is none is left out."""
    assert listed(f"{record}end\n").seen == ()


def test_same_container_twice_counts_once() -> None:
    """The first record holds, so that no target id appears twice in a run."""
    (seen,) = listed(f"{ct('5', init='41')}{ct('5', init='42')}end\n").seen
    assert seen.init == "41"


@pytest.mark.parametrize(
    ("text", "kind"),
    [("not-root\n", ProblemKind.DENIED), (ct("5"), ProblemKind.UNREADABLE), ("", ProblemKind.UNREADABLE)],
)
def test_incomplete_lists_are_a_problem(text: str, kind: ProblemKind) -> None:
    """Nobody takes half a list for all containers."""
    problem = listed(text).problem
    assert problem is not None
    assert problem.kind is kind


def test_no_lxc_is_no_problem_and_a_lost_list_is() -> None:
    """A host without LXC has no containers; one that was not read has nobody-knows-which."""
    assert listed("no-lxc\n") == Containers(())
    lost = containers({"containers": capture(CONTAINERS, ct("5"), DENIED), "devices": capture(DEVICES)})
    assert [one.name for one in lost.seen] == ["5"]
    assert lost.problem == DENIED


_LINES = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.builds(
            "|".join, st.lists(st.sampled_from(["ct", "cf", "cg", "gp", "5", "RUNNING", "9", "0::/lxc/5", "/c", "²"]))
        ),
    )
)


@given(_LINES, st.text(max_size=80))
def test_listing_never_raises(lines: list[str], devices: str) -> None:
    """Garbage gives containers with sound names, or none."""
    for seen in listed("\n".join(lines), devices).seen:
        assert "/" not in seen.name
        assert seen.init == "" or seen.init.isascii()


def test_script_withholds_notes_and_environments(tmp_path: Path) -> None:
    """The listing script itself, in a real shell: no note and no value of a variable comes back."""
    shell = shutil.which("dash") or "/bin/sh"
    config = tmp_path / "129.conf"
    config.write_text(
        "# nvidia licence, password=notes-secret\nlxc.environment: NVIDIA_API_KEY=env-secret\n"
        "lxc.environment: A=nvidia-env-secret\nmp0: /mnt/nvidia,password=mount-secret\ndev0: /dev/nvidia0\n[old]\n"
    )
    (tmp_path / "lxc-info").write_text("#!/bin/sh\necho 'State: STOPPED'\n")
    (tmp_path / "lxc-info").chmod(0o755)
    text = CONTAINERS.text.replace("/etc/pve/lxc", str(tmp_path)).replace('"$(id -u)" != 0', "0 != 0")
    done = subprocess.run(
        [shell, "-c", text], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, check=True
    )
    told = done.stdout.decode()
    assert "secret" not in told
    assert "cf|129|5:dev0: /dev/nvidia0" in told
    assert "lxc.environment" not in told
    assert "mp0" not in told
    (seen,) = listed(told).seen
    assert (seen.state, bool(seen.gpu)) == (State.STOPPED, True)
