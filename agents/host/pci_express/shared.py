"""Which GPUs share a link on their way to the processor.

It is how a machine is built and nothing to repair, so it is told in the fact and is no finding: loading weights,
offloading and traffic to GPUs elsewhere divide such a link, and traffic within a switch does not pass it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gapline.agents.host.pci_express.fact import GpuPath, PciExpressDevice, SharedLink


def shared_links(gpus: Sequence[GpuPath], devices: Mapping[str, PciExpressDevice]) -> Iterator[SharedLink]:
    """For each group of GPUs the first link from the top that they share."""
    told: set[tuple[str, ...]] = set()
    for gpu in gpus:
        for bus_id in gpu.path[1:-1]:  # the link above that device
            group = tuple(other.bus_id for other in gpus if bus_id in other.path)
            if len(group) > 1 and group not in told:
                told.add(group)
                yield SharedLink(below=bus_id, gpus=group, demand=_demand(devices[bus_id], [devices[g] for g in group]))


def _demand(link: PciExpressDevice, gpus: Sequence[PciExpressDevice]) -> float | None:
    """Lanes times GT/s at most, since what an idle link does at the moment says nothing."""
    carried, wanted = _capacity(link), [_capacity(gpu) for gpu in gpus]
    return round(sum(wanted) / carried, 2) if carried and all(wanted) else None


def _capacity(device: PciExpressDevice) -> float:
    return (device.max_width or 0) * (device.max_speed_gts or 0)
