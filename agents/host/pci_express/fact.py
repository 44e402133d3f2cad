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
    target_speed_gts: float | None
    gone: bool  # its configuration space reads as all ones
    link: Evidence
    control: Evidence | None  # the row of its configuration space with Device Control


class GpuPath(Fact):
    """One NVIDIA GPU that this host drives."""

    bus_id: str
    path: tuple[str, ...]  # bus ids from the root port down to the GPU itself
    state: str | None  # performance state P0 … P15 by nvidia-smi, None where it did not say
    busy_percent: int | None  # share of the last second or so in which it computed, by nvidia-smi
    bar1_mib: int  # size of the window to the GPU's memory; 0: not assigned
    bar1: Evidence


class PciExpressPaths(Fact):
    """All GPUs and the devices on their paths; ports that GPUs share stand there once."""

    gpus: tuple[GpuPath, ...]
    devices: tuple[PciExpressDevice, ...]
    unseen: tuple[Problem, ...]

    def device(self, bus_id: str) -> PciExpressDevice:
        """The device with that bus id, which must be on a path."""
        return next(device for device in self.devices if device.bus_id == bus_id)

    def links(self, gpu: GpuPath) -> tuple[tuple[PciExpressDevice, PciExpressDevice], ...]:
        """The links of a GPU's path, each as the port above and the device below."""
        along = tuple(self.device(bus_id) for bus_id in gpu.path)
        return tuple(pairwise(along))
