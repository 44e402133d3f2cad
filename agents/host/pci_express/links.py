"""Judgements on links: lanes, speed while the GPU works, and devices that no longer answer."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.pci_express.fact import GpuPath, PciExpressDevice, PciExpressPaths
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.problem import Problem, ProblemKind

CODES = (
    Code(
        code="pcie.width",
        title="A link runs with fewer lanes than both ends have",
        meaning="Bandwidth is proportional to lanes. The driver lowers speed to save power, but not lanes, so missing "
        "ones point to a card that sits badly, a riser, dirt, or a slot that shares its lanes.",
    ),
    Code(
        code="pcie.speed_under_load",
        title="A link is slow while its GPU works",
        meaning="An idle GPU lowers its link speed and that is right, so the speed is judged only while nvidia-smi "
        "shows it at work. Each step down halves the bandwidth.",
    ),
    Code(
        code="pcie.device_gone",
        title="A device no longer answers on the bus",
        meaning="Its whole configuration space reads as ones: it lost power or its link, and only its entry is left.",
    ),
)


def link_findings(fact: PciExpressPaths, limits: Limits) -> Iterator[Finding]:
    """Each link once, also when several GPUs share it; nothing about links of a device that is gone."""
    yield from (_gone(device) for device in fact.devices if device.gone)
    links = {below.bus_id: (above, below) for gpu in fact.gpus for above, below in fact.links(gpu)}
    yield from (_narrow(*link) for link in links.values() if _is_narrow(*link))
    for gpu in fact.gpus:
        yield from _slow(fact, gpu, limits)


def unseen_links(fact: PciExpressPaths) -> tuple[Problem, ...]:
    """GPUs that could have a better link, but whose other end cannot be seen, as in a virtual machine."""
    lone = [fact.device(gpu.bus_id) for gpu in fact.gpus if len(gpu.path) == 1]
    below = [gpu for gpu in lone if gpu.width and gpu.max_width and gpu.width < gpu.max_width]
    return tuple(
        Problem(
            kind=ProblemKind.UNSEEN,
            detail=f"GPU {gpu.bus_id} uses {gpu.width} of its {gpu.max_width} lanes; the port above it is not visible",
            hint="Audit the host of this virtual machine.",
        )
        for gpu in below
    )


def _is_narrow(above: PciExpressDevice, below: PciExpressDevice) -> bool:
    """A port that has fewer lanes than the card is wired that way, and limits what can be expected."""
    if above.gone or below.gone or not (below.width and below.max_width and above.max_width):
        return False
    return below.width < min(below.max_width, above.max_width)


def _narrow(above: PciExpressDevice, below: PciExpressDevice) -> Finding:
    expected = min(below.max_width or 0, above.max_width or 0)
    return Finding(
        code="pcie.width",
        subject=below.bus_id,
        severity=Severity.HIGH,
        title=f"The link of {below.bus_id} runs with {below.width} of {expected} lanes",
        observed=f"x{below.width}",
        expected=f"x{expected}, which both {below.bus_id} and the port {above.bus_id} have",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(below.link, above.link),
        origin="PCI Express Base Specification: the bandwidth of a link is proportional to its lanes",
        remedy=_reseat("Look up in the board's manual whether the slot shares lanes with another one"),
    )


def _slow(fact: PciExpressPaths, gpu: GpuPath, limits: Limits) -> Iterator[Finding]:
    if not _works(gpu, limits):
        return
    for above, below in fact.links(gpu):
        possible = min(below.max_speed_gts or 0, above.max_speed_gts or 0)
        if above.gone or below.gone or not below.speed_gts or below.speed_gts >= possible:
            continue
        yield Finding(
            code="pcie.speed_under_load",
            subject=f"{gpu.bus_id} via {below.bus_id}",
            severity=Severity.HIGH,
            title=f"The link of {below.bus_id} runs at {below.speed_gts:g} of {possible:g} GT/s while the GPU works",
            observed=f"{below.speed_gts:g} GT/s in state {gpu.state} at {gpu.busy_percent} % utilisation",
            expected=f"{possible:g} GT/s, which both ends can do",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.INFERRED,  # the state was asked after the speed was read
            evidence=(below.link, above.link),
            origin="PCI Express Base Specification: the bandwidth of a link is proportional to its transfer rate",
            remedy=_reseat("Look for a fixed PCIe generation in the firmware's setup (set it to Auto)"),
        )


def _works(gpu: GpuPath, limits: Limits) -> bool:
    """The state alone does not tell: asking an unused GPU without persistence mode brings it to P0 for a moment."""
    busy = gpu.busy_percent is not None and gpu.busy_percent >= limits.number("working_percent")
    return busy and gpu.state in limits.words("working_states")


def _gone(device: PciExpressDevice) -> Finding:
    return Finding(
        code="pcie.device_gone",
        subject=device.bus_id,
        severity=Severity.CRITICAL,
        title=f"{device.bus_id} no longer answers on the bus",
        observed="configuration space reads as ones throughout",
        expected="a vendor and a device id",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(device.control, device.link) if device.control else (device.link,),
        remedy=_reseat("dmesg | grep -e Xid -e AER -e pcieport"),
    )


def _reseat(first: str) -> Remedy:
    return Remedy(
        now=f"{first}; then power off, reseat the card and its riser, and start again.",
        lasting="Exchange card, riser and slot one at a time until the fault moves with one of them; update firmware.",
        undo="nothing to undo",
        cost="The host is down meanwhile.",
        risk=Risk.R3,
        restarts="the host",
        verify_agent="host.pcie",
    )
