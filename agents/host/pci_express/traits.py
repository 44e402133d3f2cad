"""What GPUs of one kind are expected to share of their links."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.pci_express.fact import GpuPath, PciExpressPaths
from gapline.orchestrator.model.trait import Trait


def traits(fact: PciExpressPaths) -> tuple[Trait, ...]:
    """Of each GPU that answers. The speed of the moment is left out: an idle GPU lowers it, but not its lanes."""
    return tuple(trait for gpu in fact.gpus for trait in _traits(fact, gpu))


def _traits(fact: PciExpressPaths, gpu: GpuPath) -> Iterator[Trait]:
    card = fact.device(gpu.bus_id)
    if card.gone or card.max_width is None or card.max_speed_gts is None:
        return
    cards = f"cards with {card.max_width} lanes of {card.max_speed_gts:g} GT/s"
    if card.width:
        lanes = f"x{card.width}"
        yield Trait(subject=gpu.bus_id, name="link width", value=lanes, among=cards, evidence=card.link)
    ends = [fact.device(bus_id) for bus_id in gpu.path[-2:]]
    if len(ends) == 2 and not ends[0].gone and ends[0].max_speed_gts is not None:  # noqa: PLR2004 - both ends of a link
        slowest = min(ends, key=lambda end: end.max_speed_gts or 0)
        speed = f"{slowest.max_speed_gts:g} GT/s"
        yield Trait(subject=gpu.bus_id, name="highest link speed", value=speed, among=cards, evidence=slowest.link)
    if card.read_request_bytes and card.control:
        size = f"{card.read_request_bytes} bytes"
        yield Trait(subject=gpu.bus_id, name="MaxReadReq", value=size, among=cards, evidence=card.control)
