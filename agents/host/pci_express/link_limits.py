"""Judgements on what links are allowed to do: the highest speed they may choose, and states that save power."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.pci_express.fact import PciExpressDevice, PciExpressPaths
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

_SLOWEST_GTS = 2.5
_POLICY = "/sys/module/pcie_aspm/parameters/policy"
CODES = (
    Code(
        code="pcie.speed_capped",
        title="A port is told not to use the highest speed that both ends have",
        meaning="The target speed of the port above a link is what it may choose at most, so the cap shows also while "
        "the GPU is idle. Firmware sets it by a fixed PCIe generation; sometimes on purpose, to make a riser work.",
    ),
    Code(
        code="pcie.power_states",
        title="Links of the GPUs may sleep between transfers",
        meaning="In L1 (and L0s) a link saves power and takes some microseconds to wake, at each burst after a pause. "
        "What that costs a decode step is not measured; servers usually leave it off.",
    ),
)


def limit_findings(fact: PciExpressPaths) -> Iterator[Finding]:
    """Each link once, and nothing about devices that are gone."""
    links = {below.bus_id: (above, below) for gpu in fact.gpus for above, below in fact.links(gpu)}
    alive = [(above, below) for above, below in links.values() if not (above.gone or below.gone)]
    yield from (_capped(*link) for link in alive if _is_capped(*link))
    yield from _power(fact, [(above, below, states) for above, below in alive if (states := _states(above, below))])


def _is_capped(above: PciExpressDevice, below: PciExpressDevice) -> bool:
    """The slowest is what a driver may write while a GPU idles, so it does not count as somebody's setting."""
    possible = min(above.max_speed_gts or 0, below.max_speed_gts or 0)
    return above.target_speed_gts is not None and _SLOWEST_GTS < above.target_speed_gts < possible


def _capped(above: PciExpressDevice, below: PciExpressDevice) -> Finding:
    possible = min(above.max_speed_gts or 0, below.max_speed_gts or 0)
    return Finding(
        code="pcie.speed_capped",
        subject=below.bus_id,
        severity=Severity.MEDIUM,
        title=f"The port above {below.bus_id} may go to {above.target_speed_gts:g} of {possible:g} GT/s",
        observed=f"target speed of {above.bus_id}: {above.target_speed_gts:g} GT/s",
        expected=f"{possible:g} GT/s, which both ends can do, unless it was lowered to keep the link free of errors",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,  # what the link does under load was not seen
        evidence=(*((above.link_control,) if above.link_control else ()), above.link, below.link),
        origin="PCI Express Base Specification: Target Link Speed is an upper limit to the speed of a link",
        remedy=Remedy(
            now="Look at host.pcie_errors first: a link that made errors may be slow for a reason.",
            lasting="In the firmware's setup: PCIe link speed of that slot to Auto, then a benchmark under load with "
            "an eye on the error counters.",
            undo="Set the generation that was there.",
            cost="A reboot; errors can come back with a poor riser.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent="host.pcie",
        ),
    )


def _states(above: PciExpressDevice, below: PciExpressDevice) -> tuple[str, ...]:
    """L1 needs the consent of both ends; each end enters L0s on its own."""
    ours, theirs = above.power_states or (), below.power_states or ()
    sleep = ("L1",) if "L1" in ours and "L1" in theirs else ()
    return (*(("L0s",) if "L0s" in (*ours, *theirs) else ()), *sleep)


def _power(
    fact: PciExpressPaths, links: list[tuple[PciExpressDevice, PciExpressDevice, tuple[str, ...]]]
) -> Iterator[Finding]:
    if not links:
        return
    controls = tuple(one.link_control for above, below, _ in links for one in (above, below) if one.link_control)
    policy = fact.power_policy
    shown = "; ".join(f"{below.bus_id} {' and '.join(states)}" for _, below, states in links)
    yield Finding(
        code="pcie.power_states",
        subject="links of the GPUs",
        severity=Severity.LOW,
        title=f"{len(links)} link(s) on the way to GPUs may sleep between transfers",
        observed=f"{shown}; policy {policy.value if policy else 'not seen'}",
        expected="no link states that save power on the way to a GPU that serves",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(*controls, *((policy.evidence,) if policy else ())),
        settled_by="a benchmark of small host-to-device copies with pauses, under both policies",
        remedy=Remedy(
            now=f"echo performance > {_POLICY}   # refused where the firmware keeps these states to itself",
            lasting="The kernel parameter pcie_aspm.policy=performance, or ASPM off in the firmware's setup. "
            "pcie_aspm=off only leaves alone what the firmware has set up.",
            undo=f"echo {policy.value if policy else 'default'} > {_POLICY}",
            cost="a few watts for each link",
            risk=Risk.R1,
            restarts="nothing; the host for the parameter",
            verify_agent="host.pcie",
        ),
    )
