"""What a host's NVIDIA kernel driver looks like from outside."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from gapline.agents.char_major import CharMajor
from gapline.agents.device_node import DeviceNode
from gapline.agents.host.pci_gpu import PciGpu
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem


class Flavour(StrEnum):
    """Which of the two kernel modules is loaded, by the first line of /proc/driver/nvidia/version."""

    OPEN = "open"
    PROPRIETARY = "proprietary"


class LoadedDriver(Fact):
    """The module that runs."""

    version: str
    flavour: Flavour
    evidence: Evidence


class DriverGpu(Fact):
    """A GPU as the driver lists it. `minor` is the N of its /dev/nvidiaN, which is not its index."""

    bus_id: str
    model: str
    minor: int | None
    excluded: bool
    evidence: Evidence


class KernelModule(Fact):
    """A line of /proc/modules that matters here."""

    name: str
    evidence: Evidence


class InstalledModule(Fact):
    """What `modinfo` finds for the running kernel: a version, or (None) no module at all."""

    version: str | None
    evidence: Evidence


class HostLibrary(Fact):
    """A file of libnvidia-ml on the host, with the version in its name."""

    path: str
    version: str
    evidence: Evidence


class ModuleParameter(Fact):
    """A parameter of the loaded module."""

    name: str
    value: str
    evidence: Evidence


class NvidiaDriver(Fact):
    """The driver, its majors, nodes and GPUs, and the GPUs that the bus shows."""

    loaded: LoadedDriver | None  # None: the module is not loaded
    installed: InstalledModule | Problem  # the problem: why the module on disk could not be seen
    modules: tuple[KernelModule, ...]  # nvidia* and nouveau, of all loaded ones
    char_majors: tuple[CharMajor, ...]  # the whole table, so that the new owner of a stale major can be named
    nodes: tuple[DeviceNode, ...]  # /dev/nvidia* and /dev/nvidia-caps/*, links not followed
    gpus: tuple[DriverGpu, ...]  # by the driver
    pci: tuple[PciGpu, ...]  # by the bus: NVIDIA's, without those that belong to virtual machines
    libraries: tuple[HostLibrary, ...]  # the driver's user space on the host; empty where there is none
    switches: tuple[Evidence, ...]  # the NVSwitches that the driver lists
    services: tuple[str, ...]  # those of NVIDIA's services that run under systemd: "nvidia-persistenced"
    parameters: tuple[ModuleParameter, ...]

    @property
    def version(self) -> str | None:
        """Of the loaded module, None when none is loaded."""
        return self.loaded.version if self.loaded else None

    @property
    def flavour(self) -> Flavour | None:
        """Of the loaded module, None when none is loaded."""
        return self.loaded.flavour if self.loaded else None

    @property
    def majors(self) -> Mapping[str, CharMajor]:
        """NVIDIA's majors by the names in /proc/devices: nvidia, nvidiactl, nvidia-uvm, nvidia-caps and more.

        Older drivers register 195 once as `nvidia-frontend`; the names `nvidia` and `nvidiactl` then stand
        for that line, since the three always share the fixed major 195.
        """
        named = {major.name: major for major in self.char_majors if major.name.startswith("nvidia")}
        frontend = named.get("nvidia-frontend")
        return named if frontend is None else {"nvidia": frontend, "nvidiactl": frontend, **named}

    def owners(self, number: int) -> tuple[str, ...]:
        """The names of the drivers that hold a major now; empty when nobody does."""
        return tuple(dict.fromkeys(major.name for major in self.char_majors if major.number == number))

    def node(self, path: str) -> DeviceNode | None:
        """The node at a path of the host, None when there is none."""
        return next((node for node in self.nodes if node.path == path), None)
