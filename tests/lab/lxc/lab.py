"""A Proxmox-like (or plain LXC) host in private namespaces: real containers, real device policy, real sshd."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import IO, Self

from tests.lab.lxc import host_cgroup, stand_in
from tests.lab.lxc.container import LabContainer, plain_config, proxmox_config
from tests.lab.lxc.root import build_root

HERE = Path(__file__).parent
SHOW_DRIVER = HERE.parent / "pve" / "show-driver.sh"
GENERATOR = HERE.parent / "pve" / "lxc-config.pl"
SSH_PORT = 2222  # in a network namespace of its own: nothing is exposed and nothing collides
_PATIENCE = 20.0  # seconds for the lab to end


class Layout(StrEnum):
    """How the host keeps its containers."""

    PROXMOX = "proxmox"
    PLAIN = "plain"


class LxcLab:
    """The running lab; a context manager. Leaving it ends every process and leaves no mount and no cgroup."""

    user = "root"
    ssh_port = SSH_PORT

    def __init__(self, containers: tuple[LabContainer, ...], layout: Layout = Layout.PROXMOX) -> None:
        self.containers, self.layout = containers, layout
        self.folder = Path(tempfile.mkdtemp(prefix="gapline-lab-"))
        self.identity, self.known_hosts = self.folder / "id_ed25519", self.folder / "known_hosts"
        self._outer: subprocess.Popen[str] | None = None
        self._pid = self.uvm_major = 0
        mount = host_cgroup.unified_mount()
        if mount is None:
            raise RuntimeError("no cgroup2 hierarchy is mounted")
        self.cgroup = mount / self.folder.name

    def __enter__(self) -> Self:
        try:
            self._enter_namespaces()
            self._place_stand_ins()
            self._start_sshd()
            for container in self.containers:
                self._create(container)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the lab's PID 1, and with it everything; then remove what was made on the real host."""
        if self._outer is not None:
            if self._pid:  # its node in the real /dev goes at once, not when the kernel gets to it
                self.run("ip", "link", "del", "driver", check=False)
            with self._outer as outer:
                assert outer.stdin is not None
                outer.stdin.close()
                outer.wait(timeout=_PATIENCE)
            self._outer = None
        if self.cgroup.exists():
            host_cgroup.remove(self.cgroup)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def netns_command(self) -> tuple[str, ...]:
        """Put before a command of the real host, it runs it with the lab's network: the auditor's place."""
        return ("nsenter", f"--net=/proc/{self._pid}/ns/net", "--")

    def path(self, inside: str) -> Path:
        """A path of the lab's host as the test process can reach it."""
        return Path(f"/proc/{self._pid}/root") / inside.lstrip("/")

    def run(self, *argv: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command as root on the lab's host."""
        enter = ("nsenter", f"--target={self._pid}", "--mount", "--net", "--pid", "--uts", "--cgroup", "--ipc", "--")
        # Entering a cgroup namespace does not move the process into its cgroups.
        join = 'echo 0 > /sys/fs/cgroup/init.scope/cgroup.procs; exec "$@"'
        done = subprocess.run(
            (*enter, "sh", "-c", join, "sh", *argv),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if check and done.returncode:
            raise RuntimeError(f"{argv}: exit {done.returncode}: {done.stderr or done.stdout}")
        return done

    def config(self, name: str) -> Path:
        """The configuration that an administrator edits."""
        return self.path(
            f"/etc/pve/lxc/{name}.conf" if self.layout is Layout.PROXMOX else f"/var/lib/lxc/{name}/config"
        )

    def start(self, name: str) -> None:
        """Start a container as its host does: on Proxmox VE its LXC configuration is generated anew each time."""
        if self.layout is Layout.PROXMOX:
            self.run("perl", str(GENERATOR), name)
        self.run("lxc-start", "-n", name, "-l", "ERROR", "-o", f"/var/log/lxc/{name}.log")
        self.run("lxc-wait", "-n", name, "-s", "RUNNING", "-t", "20")

    def stop(self, name: str) -> None:
        """Pull the plug."""
        self.run("lxc-stop", "-k", "-n", name)

    def restart(self, name: str) -> None:
        """What `restarts: container` in a remedy means."""
        self.stop(name)
        self.start(name)

    def freeze(self, name: str) -> None:
        """All of its processes stand still; whoever enters it hangs."""
        self.run("lxc-freeze", "-n", name)

    def thaw(self, name: str) -> None:
        """Undo `freeze`."""
        self.run("lxc-unfreeze", "-n", name)

    def init_pid(self, name: str) -> int:
        """The host pid of the container's init, as the lab's host counts."""
        return int(self.run("lxc-info", "-n", name, "-p", "-H").stdout)

    def inside(self, name: str, script: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script in a container, under its own device policy."""
        return self.run("lxc-attach", "-n", name, "--", "sh", "-c", script, check=False)

    def _enter_namespaces(self) -> None:
        self.cgroup.mkdir()
        join = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
        unshare = ("unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--propagation", "private",
                   "--fork", "--kill-child=KILL", "--mount-proc")  # fmt: skip
        first = (sys.executable, str(HERE / "pid1.py"), "sh", str(HERE / "namespace.sh"), str(self.folder), "pve-lab")
        self._outer = subprocess.Popen(
            ("sh", "-c", join, "sh", str(self.cgroup), *unshare, *first),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        _expect(self._outer.stdout, "ready\n")
        children = Path(f"/proc/{self._outer.pid}/task/{self._outer.pid}/children").read_text()
        self._pid = int(children.split()[0])
        # unshare itself waits in the lab's root cgroup; a cgroup with processes cannot hand controllers down.
        (self.cgroup / "init.scope/cgroup.procs").write_text(str(self._outer.pid))

    def _place_stand_ins(self) -> None:
        devices = Path("/proc/devices").read_text()
        self.uvm_major = stand_in.driver_major(devices)
        for node in stand_in.nodes(self.uvm_major):
            os.mknod(self.path(f"/dev/{node.name}"), 0o020666, os.makedev(node.major, node.minor))
            self.path(f"/dev/{node.name}").chmod(0o666)
        self.path("/run/devices").write_text(stand_in.proc_devices(devices))
        stand_in.write_driver(self.path("/run/driver"))
        self.run("sh", str(SHOW_DRIVER), "/run/driver")
        self.run("mount", "--bind", "/run/devices", "/proc/devices")

    def _start_sshd(self) -> None:
        for key in (self.identity, self.folder / "host_key"):
            subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", key), check=True)
        host_key = (self.folder / "host_key.pub").read_text()
        self.known_hosts.write_text(f"[127.0.0.1]:{SSH_PORT} {host_key}")
        for name in ("host_key", "id_ed25519.pub"):
            shutil.copy(self.folder / name, self.path("/run") / name)
        self.path("/run/sshd.conf").write_text(
            f"ListenAddress 127.0.0.1:{SSH_PORT}\nHostKey /run/host_key\nAuthorizedKeysFile /run/id_ed25519.pub\n"
            "StrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPidFile /run/sshd.pid\n"
        )
        self.run("/usr/sbin/sshd", "-f", "/run/sshd.conf", "-E", "/run/sshd.log")

    def _create(self, container: LabContainer) -> None:
        base = self.path(f"/var/lib/lxc/{container.name}")
        base.mkdir()
        build_root(container, base / "rootfs")
        if self.layout is Layout.PROXMOX:
            self._link_cluster_folder()
        text = proxmox_config(container) if self.layout is Layout.PROXMOX else plain_config(container)
        self.config(container.name).write_text(text.replace("{uvm}", str(self.uvm_major)))
        if container.started:
            self.start(container.name)

    def _link_cluster_folder(self) -> None:
        """`/etc/pve/lxc` is a link into the node's folder of the cluster file system."""
        link = self.path("/etc/pve/lxc")
        if not link.is_symlink():
            self.path("/etc/pve/nodes/pve-lab/lxc").mkdir(parents=True)
            link.symlink_to("nodes/pve-lab/lxc")


def _expect(stream: IO[str] | None, line: str) -> None:
    assert stream is not None
    got = stream.readline()
    if got != line:
        raise RuntimeError(f"the lab's namespaces were not set up: {got!r}")
