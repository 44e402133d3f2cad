"""What stands ready for the next boot of a host."""

from __future__ import annotations

from enum import StrEnum

from gapline.agents.host.kernel_version import newest
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class InstalledKernel(Fact):
    """A kernel in /boot."""

    version: str  # "6.14.11-4-pve"
    listed: bool  # its modules.dep could be read, so that what it lacks is known
    headers: bool  # /lib/modules/VERSION/build leads to headers
    modules: tuple[str, ...]  # paths of the NVIDIA modules below /lib/modules/VERSION
    evidence: Evidence
    module_evidence: tuple[Evidence, ...]


class DkmsDriver(Fact):
    """A driver whose source DKMS has, and the kernels that it has built it for."""

    name: str  # "nvidia", "nvidia-current-open"
    version: str
    built: tuple[str, ...]
    evidence: Evidence


class BuildFailure(Fact):
    """What the log says that a failed build left behind."""

    name: str
    version: str
    kernel: str
    said: str
    evidence: Evidence


class Choice(Fact):
    """Which kernel boots next, and who says so. None: it is not known."""

    version: str | None
    by: str  # "/etc/kernel/proxmox-boot-pin", "the newest kernel, by proxmox-boot-tool", "GRUB's menu"
    evidence: tuple[Evidence, ...]
    missing: str = ""  # a kernel or menu entry that is asked for and not there
    asked_in: str = ""  # the file that asks for it


class Nodes(StrEnum):
    """Which device nodes something makes."""

    GPU = "/dev/nvidia0 and the like"
    UVM = "/dev/nvidia-uvm"


class NodeMaker(Fact):
    """Something that runs at boot, or before a container starts, and makes nodes."""

    file: str
    command: str
    makes: tuple[Nodes, ...]
    in_time: bool  # a udev rule, a hook of the container, or a unit that is ordered before the containers
    evidence: Evidence


class Package(Fact):
    """An installed package of kernels or headers."""

    name: str
    held: bool
    evidence: Evidence


class NextBoot(Fact):
    """Running and coming."""

    running: str
    loaded: str | None  # version of the driver that runs
    loaded_evidence: Evidence | None
    kernels: tuple[InstalledKernel, ...]
    choice: Choice
    dkms: tuple[DkmsDriver, ...]
    failures: tuple[BuildFailure, ...]
    containers: bool  # LXC is installed here
    makers: tuple[NodeMaker, ...]
    packages: tuple[Package, ...]
    proxmox_tool: bool  # proxmox-boot-tool keeps the boot partitions
    unread: tuple[str, ...]
    looked: Evidence  # in how many files makers of nodes were looked for

    def kernel(self, version: str) -> InstalledKernel | None:
        """The installed kernel of that version."""
        return next((kernel for kernel in self.kernels if kernel.version == version), None)

    def failure(self, version: str) -> BuildFailure | None:
        """The failed build for that kernel."""
        return next((failure for failure in self.failures if failure.kernel == version), None)

    @property
    def latest(self) -> str | None:
        """The newest installed kernel."""
        return newest(kernel.version for kernel in self.kernels)
