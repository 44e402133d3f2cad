"""The way from each GPU to its root port."""

from __future__ import annotations

from itertools import pairwise

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem


class PciExpressDevice(Fact):
    """A GPU or a port above one. None: the kernel does not know, or would not say."""

    bus_id: str
    width: int | None  # lanes in use
    max_width: int | None
    speed_gts: float | None  # GT/s per lane at the moment; an idle GPU lowers it
    max_speed_gts: float | None
    payload_bytes: int | None  # MaxPayload
    payload_supported_bytes: int | None
    read_request_bytes: int | None  # MaxReadReq
    target_speed_gts: float | None  # the highest that the device may choose
    power_states: tuple[str, ...] | None  # link states that may be entered to save power: "L0s", "L1"
    gone: bool  # its configuration space reads as all ones
    link: Evidence
    control: Evidence | None  # the row of its configuration space with Device Control
    link_control: Evidence | None


class GpuPath(Fact):
    """One NVIDIA GPU that this host drives."""

    bus_id: str
    path: tuple[str, ...]  # bus ids from the root port down to the GPU itself
    state: str | None  # performance state P0 … P15 by nvidia-smi, None where it did not say
    busy_percent: int | None  # share of the last second or so in which it computed, by nvidia-smi
    bar1_mib: int  # size of the window to the GPU's memory; 0: not assigned
    bar1_sizes_mib: tuple[int, ...] | None  # what the GPU can be given by its resizable-BAR capability; None: not seen
    bar1: Evidence


class PowerPolicy(Fact):
    """The kernel's policy for power states of links, by pcie_aspm: "default", "performance", "powersave"."""

    value: str
    evidence: Evidence


class SharedLink(Fact):
    """A link above which GPUs have the same way to the processor."""

    below: str  # the device at its lower end, which is a switch
    gpus: tuple[str, ...]
    demand: float | None  # how many times what it can carry the links of these GPUs could bring; None: not known


class PciExpressPaths(Fact):
    """All GPUs and the devices on their paths; ports that GPUs share stand there once."""

    gpus: tuple[GpuPath, ...]
    devices: tuple[PciExpressDevice, ...]
    shared: tuple[SharedLink, ...]
    power_policy: PowerPolicy | None
    unseen: tuple[Problem, ...]

    def device(self, bus_id: str) -> PciExpressDevice:
        """The device with that bus id, which must be on a path."""
        return next(device for device in self.devices if device.bus_id == bus_id)

    def links(self, gpu: GpuPath) -> tuple[tuple[PciExpressDevice, PciExpressDevice], ...]:
        """The links of a GPU's path, each as the port above and the device below."""
        along = tuple(self.device(bus_id) for bus_id in gpu.path)
        return tuple(pairwise(along))
