"""Judgements on PCI Express errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.host.aer.fact import ErrorCounters, PciErrors
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

_VERIFY = "host.pcie_errors"
_SPECIFICATION = "PCI Express Base Specification, Error Signaling and Logging"
CODES = (
    Code(
        code="pcie_errors.fatal",
        title="A device on a GPU's path has counted fatal errors",
        meaning="After a fatal error the link can no longer be trusted; a GPU behind it has usually fallen off.",
    ),
    Code(
        code="pcie_errors.nonfatal",
        title="A device on a GPU's path has counted errors that lost a transaction",
        meaning="The link goes on, but what was under way is lost: a time-out, a poisoned packet, an unsupported "
        "request. Some come from a single event at boot or from a tool that asks for what is not there.",
    ),
    Code(
        code="pcie_errors.correctable",
        title="A device on a GPU's path has counted errors that were repaired",
        meaning="Packets were sent again. A few in weeks are normal; a steady rate points to a riser, a retimer or a "
        "connector, and costs bandwidth.",
    ),
    Code(
        code="pcie_errors.withheld",
        title="Linux does not receive PCI Express errors",
        meaning="The firmware kept error reporting to itself (_OSC), or a parameter turned it off. Counters of zero "
        "then prove nothing; errors are logged by the management controller, if at all.",
    ),
)


def error_findings(fact: PciErrors, limits: Limits) -> Iterator[Finding]:
    """The worst kind first; each device on its own, since the partner of a faulty one can hold the count."""
    for one in fact.counters:
        if one.fatal:
            yield _uncorrected(one, one.fatal, "fatal", Severity.HIGH)
        if one.nonfatal:
            yield _uncorrected(one, one.nonfatal, "nonfatal", Severity.MEDIUM)
        if one.correctable:
            yield _correctable(one, fact, limits)
    yield from _withheld(fact)


def _uncorrected(one: ErrorCounters, counts: Mapping[str, int], kind: str, severity: Severity) -> Finding:
    return Finding(
        code=f"pcie_errors.{kind}",
        subject=one.bus_id,
        severity=severity,
        title=f"{one.bus_id} has counted {sum(counts.values())} {kind} PCI Express error(s) since the boot",
        observed=_shown(counts),
        expected="none",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=one.evidence,
        origin=_SPECIFICATION,
        remedy=_reseat(one),
    )


def _correctable(one: ErrorCounters, fact: PciErrors, limits: Limits) -> Finding:
    count = sum(one.correctable.values())
    rate = count / max(fact.up_hours, 1.0)  # after a boot of minutes, a handful of errors is no rate
    often = rate >= limits.number("correctable_per_hour")
    return Finding(
        code="pcie_errors.correctable",
        subject=one.bus_id,
        severity=Severity.MEDIUM if often else Severity.INFO,
        title=f"{one.bus_id} has counted {count} repaired PCI Express error(s) since the boot",
        observed=f"{_shown(one.correctable)}; {rate:.3g} an hour on average",
        expected=f"fewer than {limits.number('correctable_per_hour'):g} an hour",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=one.evidence,
        settled_by="the same counters before and after a copy benchmark, with its bandwidth",
        remedy=_reseat(one),
    )


def _withheld(fact: PciErrors) -> Iterator[Finding]:
    ports = tuple(one for one in fact.counters if one.handled is False)
    if not ports:
        return
    yield Finding(
        code="pcie_errors.withheld",
        subject="root ports",
        severity=Severity.LOW,
        title="PCI Express errors of the GPUs' root ports are not reported to Linux",
        observed=f"no error service for {', '.join(one.bus_id for one in ports)}",
        expected="a device PORT:pcie002 in /sys/bus/pci_express/devices",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(one.evidence[0] for one in ports),
        origin="Linux, PCI/pcieaer-howto.rst, and drivers/pci/pcie/portdrv.c: the service exists where errors are the "
        "kernel's",
        remedy=Remedy(
            now="Find out who has them: journalctl -k -b | grep -e _OSC -e AER; grep -o -e pcie_ports=compat -e noaer "
            "/proc/cmdline. Look for errors in the management controller: ipmitool sel list",
            lasting="In the firmware's setup: native AER, or PCIe error reporting to the operating system; or take the "
            "parameter out. pcie_ports=native takes it from the firmware by force, and can hide errors from both.",
            undo="Set the firmware back.",
            cost="A reboot; the management controller may then see fewer errors.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent=_VERIFY,
        ),
    )


def _shown(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.items())


def _reseat(one: ErrorCounters) -> Remedy:
    return Remedy(
        now=f"journalctl -k -b | grep -e AER -e {one.bus_id}   # when, and what was going on",
        lasting="If it goes on under load: power off, reseat the card and its riser or cable; then exchange card, "
        "riser and slot one at a time until the fault moves with one of them; update the firmware.",
        undo="nothing to undo",
        cost="The host is down meanwhile.",
        risk=Risk.R3,
        restarts="the host",
        verify_agent=_VERIFY,
    )
