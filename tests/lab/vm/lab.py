"""A Proxmox-like host as a virtual machine: real boots, drivers with dynamic majors, AppArmor, every controller."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from tests.lab.vm import image as images
from tests.lab.vm import kernel
from tests.lab.vm.image import Image
from tests.lab.vm.machine import Machine, free_port, overlay

UVM_FIRST = "nvidia:195:0,nvidiactl:195:255,nvidia-uvm"
CAPS_FIRST = "nvidia:195:0,nvidiactl:195:255,nvidia-caps,nvidia-uvm"  # takes the dynamic major that uvm had before


def golden_image() -> Image:
    """The image from the cache; else built, booted once to fill its caches, and put in place of older ones."""
    package = kernel.newest()
    finished = Image(images.cache() / images.content_key(package))
    if finished.disk.exists():
        return finished
    images.cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="building-", dir=images.cache(), ignore_cleanup_errors=True) as folder:
        built = images.build(package, Path(folder) / "image")
        overlay(built.disk, Path(built.base.name))
        _first_boot(built)
        for outdated in images.cache().glob("[0-9a-f]" * 16):
            shutil.rmtree(outdated)
        built.folder.rename(finished.folder)
    return finished


def _first_boot(image: Image) -> None:
    machine = Machine(image, image.disk, UVM_FIRST, free_port())
    try:
        machine.wait_for_ssh()
        machine.power_off()
    finally:
        machine.kill()


class VmLab:
    """A host on a disk of its own; a context manager. Each `boot` is a reboot with what was written before."""

    user = "root"

    def __init__(self, image: Image) -> None:
        self.image = image
        self.folder = Path(tempfile.mkdtemp(prefix="gapline-vm-"))
        self.disk = self.folder / "run.qcow2"
        self.ssh_port, self.identity = free_port(), image.identity
        self._machine: Machine | None = None
        overlay(self.disk, image.disk)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._machine is not None:
            self._machine.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def known_hosts(self) -> Path:
        """Holds the running machine's key under its address and port."""
        return self.machine.known_hosts

    @property
    def machine(self) -> Machine:
        """The machine, which must have been booted."""
        assert self._machine is not None
        return self._machine

    def boot(self, order: str) -> None:
        """Start the host with its drivers registered in this order, and wait until it can be logged in to."""
        self.power_off()
        self._machine = Machine(self.image, self.disk, order, self.ssh_port)
        self._machine.wait_for_ssh()

    def power_off(self) -> None:
        """Shut down, if it runs."""
        if self._machine is not None:
            self._machine.power_off()
            self._machine = None

    def ssh(self, script: str, text: str = "") -> str:
        """Run a shell script on the host as root; its output.

        Raises:
            RuntimeError: it failed.
        """
        done = self.try_ssh(script, text)
        if done.returncode:
            raise RuntimeError(f"{script!r}: exit {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout

    def try_ssh(self, script: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """The same, for scripts that may fail."""
        return self.machine.ssh(script, text)

    def major(self, name: str) -> int:
        """What the kernel says now."""
        lines = self.ssh("sed '/^Block/q' /proc/devices").splitlines()
        return next(int(line.split()[0]) for line in lines if line.split()[1:] == [name])
