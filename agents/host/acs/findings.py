"""Judgements on Access Control Services above GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.acs.fact import COMPLETION_REDIRECT, REQUEST_REDIRECT, AcsPort, PeerLink, PeerPaths
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

_ORIGIN = (
    "NVIDIA, NCCL user guide, Troubleshooting, 'PCI Access Control Services'; NVIDIA/nccl issue 2079: an all-reduce "
    "that hung with ACSCtl 001d on the bridges ran once it was cleared"
)
CODES = (
    Code(
        code="acs.redirect",
        title="Bridges above the GPUs send peer-to-peer traffic to the root complex",
        meaning="With ACS Request or Completion Redirect, data between two GPUs goes up through the root complex and "
        "the IOMMU, also where both sit on one switch: slower, and where addresses are translated collectives can "
        "hang (NCCL user guide). Linux sets it wherever an IOMMU is on, because the isolation of devices that are "
        "passed to virtual machines rests on it.",
    ),
)


def redirect_findings(fact: PeerPaths) -> Iterator[Finding]:
    """One for all ports: they are set together, and cleared together."""
    ports = tuple(port for port in fact.ports if port.redirects)
    if not ports:
        return
    severity, reason = _severity(fact)
    yield Finding(
        code="acs.redirect",
        subject="ports above GPUs",
        severity=severity,
        base_severity=Severity.HIGH,
        severity_reason=reason,
        title=f"ACS redirect is on at {len(ports)} port(s) above the GPUs, which detours data between them",
        observed=f"ACSCtl {_controls(ports)}; {_translated(fact)}",
        expected="Request Redirect and Completion Redirect clear above GPUs that exchange data over PCI Express",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(*(port.evidence for port in ports), *fact.passed_through[:4], *fact.peer_evidence[:4]),
        origin=_ORIGIN,
        remedy=_remedy(ports),
    )


def _severity(fact: PeerPaths) -> tuple[Severity, str]:
    if fact.peers is PeerLink.NVLINK:
        return Severity.INFO, "high → info: NVLink joins every pair of GPUs, so their data does not go over PCI Express"
    if fact.peers is PeerLink.NONE:
        return Severity.INFO, "high → info: the driver offers no peer-to-peer over PCI Express between these GPUs"
    if fact.passed_through:
        reason = "devices are bound to vfio-pci, and the isolation of their virtual machines rests on these bits"
        return Severity.MEDIUM, f"high → medium: {reason}"
    if fact.peers is None:
        return Severity.MEDIUM, "high → medium: it was not seen whether the GPUs exchange data over PCI Express"
    return Severity.HIGH, ""


def _controls(ports: tuple[AcsPort, ...]) -> str:
    values = sorted({port.control for port in ports})
    return "; ".join(
        f"{value:04x} ({_decoded(value)}) on {', '.join(port.bus_id for port in ports if port.control == value)}"
        for value in values
    )


def _decoded(control: int) -> str:
    return " ".join(f"{name}+" for bit, name in enumerate(_BITS) if control & 1 << bit)


def _translated(fact: PeerPaths) -> str:
    kinds = sorted(set(filter(None, fact.translation.values())))
    return f"IOMMU groups of the GPUs: {', '.join(kinds)}" if kinds else "no IOMMU group"


def _remedy(ports: tuple[AcsPort, ...]) -> Remedy:
    named = " ".join(port.bus_id for port in ports)
    models = sorted({f"pci:{port.vendor[2:]}:{port.device[2:]}" for port in ports})
    return Remedy(
        now="First make sure that no PCI device is passed to a virtual machine: ls /sys/bus/pci/drivers/vfio-pci; grep "
        f"-l hostpci /etc/pve/qemu-server/*.conf. Then, with the GPUs idle: for p in {named}; do setpci -s $p "
        "ECAP_ACS+6.w=0000:000c; done   # clears Request and Completion Redirect only",
        lasting="Registers are lost at reboot. Run the same loop at boot from a oneshot unit with "
        "Before=pve-guests.service (elsewhere Before=lxc.service); or boot with pci=disable_acs_redir= and the ports' "
        f"model, here {' and '.join(models)} (several are separated by ';', which GRUB needs escaped); it applies to "
        "every port of that model. pcie_acs_override changes how devices are grouped and clears nothing.",
        undo="; ".join(f"setpci -s {port.bus_id} ECAP_ACS+6.w={port.control & _REDIRECT:04x}:000c" for port in ports),
        cost="Devices below one port or switch can then reach each other's memory past the IOMMU, so virtual machines "
        "with passed-through devices are no longer isolated.",
        risk=Risk.R4,
        restarts="nothing for the registers; the host for the parameter",
        verify_agent="host.pcie_acs",
    )


_REDIRECT = REQUEST_REDIRECT | COMPLETION_REDIRECT
_BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
