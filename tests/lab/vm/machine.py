"""One virtual machine from power-on to power-off.

QEMU by software emulation only: KVM that is there but does not work ends QEMU instead of falling back (seen).
"""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

from tests.lab.vm.image import Image

_BOOT_PATIENCE = 600.0  # seconds until ssh answers: about 20 on two idle cores, and CI machines are not idle
_HALT_PATIENCE = 180.0


class Machine:
    """A running machine. `order` names the devices whose drivers load, in that order."""

    def __init__(self, image: Image, disk: Path, order: str, port: int) -> None:
        self.image, self.port = image, port
        self.console, self.known_hosts = disk.with_suffix(".console"), disk.with_suffix(".known_hosts")
        kind, key, *_ = image.host_key.read_text().split()
        self.known_hosts.write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
        self._complaints = disk.with_suffix(".qemu")
        with self._complaints.open("w") as complaints:
            self._qemu = subprocess.Popen(
                _command(image, disk, order, port, self.console), stdin=subprocess.DEVNULL, stderr=complaints
            )

    def wait_for_ssh(self) -> None:
        """Until a login works.

        Raises:
            TimeoutError: it never did; the console log is in the message.
        """
        deadline = time.monotonic() + _BOOT_PATIENCE
        while self.ssh("true", patience=60).returncode:
            if time.monotonic() > deadline or self._qemu.poll() is not None:
                raise TimeoutError(f"no ssh; QEMU and the console said:\n{self._last_words()}")
            time.sleep(0.5)

    def _last_words(self) -> str:
        said = (path.read_text(errors="replace") for path in (self._complaints, self.console) if path.exists())
        return "".join(said)[-4000:]

    def ssh(self, script: str, text: str = "", patience: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a shell script there as root, with `text` on its standard input."""
        options = ("-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={self.known_hosts}",
                   "-o", "ConnectTimeout=30", "-i", str(self.image.identity), "-p", str(self.port))  # fmt: skip
        return subprocess.run(
            ("ssh", *options, "root@127.0.0.1", script),
            check=False, input=text, capture_output=True, text=True, timeout=patience,
        )  # fmt: skip

    def power_off(self) -> None:
        """Shut down in order; where it does not, pull the plug."""
        if self._qemu.poll() is None:
            self.ssh("systemctl poweroff --no-block")
        try:
            self._qemu.wait(timeout=_HALT_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Pull the plug."""
        self._qemu.kill()
        self._qemu.wait()


def free_port() -> int:
    """A loopback port nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def overlay(disk: Path, over: Path) -> None:
    """A copy-on-write disk over another one, which stays as it is."""
    kind = "raw" if over.suffix == ".img" else "qcow2"
    subprocess.run(("qemu-img", "create", "-q", "-f", "qcow2", "-b", str(over), "-F", kind, str(disk)), check=True)


def _command(image: Image, disk: Path, order: str, port: int, console: Path) -> tuple[str, ...]:
    """Four CPUs on two NUMA nodes; a reboot ends QEMU, so that the next start can change the order."""
    kernel = f"root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off no_timer_check quiet lab.order={order}"
    return (
        "qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
        "-m", "2048", "-smp", "4,sockets=2,cores=2,threads=1",
        "-object", "memory-backend-ram,id=m0,size=1024M", "-object", "memory-backend-ram,id=m1,size=1024M",
        "-numa", "node,nodeid=0,memdev=m0,cpus=0-1", "-numa", "node,nodeid=1,memdev=m1,cpus=2-3",
        "-numa", "dist,src=0,dst=1,val=32",
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", kernel,
        "-drive", f"file={disk},if=none,id=d0,cache=unsafe,discard=unmap", "-device", "virtio-blk-pci,drive=d0",
        "-netdev", f"user,id=n0,hostfwd=tcp:127.0.0.1:{port}-:22", "-device", "virtio-net-pci,netdev=n0,romfile=",
        "-device", "virtio-rng-pci", "-nodefaults", "-display", "none", "-serial", f"file:{console}", "-no-reboot",
    )  # fmt: skip
