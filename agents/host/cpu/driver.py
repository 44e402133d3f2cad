"""Judgement on the frequency driver: acpi-cpufreq on an AMD processor that could do better, and why."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.cpu.fact import CpuFrequency, Processor
from gapline.agents.host.kernel_version import older
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="cpu.driver_acpi",
        title="acpi-cpufreq drives a processor that amd_pstate could drive",
        meaning="acpi-cpufreq knows three fixed frequencies; amd_pstate in active mode lets the hardware choose finely "
        "and quickly (Linux, admin-guide/pm/amd-pstate.rst). No measurement shows what that alone gives a decode.",
    ),
)
_OLD = "acpi-cpufreq"
_ZEN, _TURIN = 0x17, 0x1A
_FIRST_WITH_CPPC = 0x30  # family 0x17: Naples (below) has none
_SERVER_PROFILES = {"4", "5", "7"}


def driver_findings(fact: CpuFrequency, limits: Limits) -> Iterator[Finding]:
    """Low where nothing else is wrong with governor and boost, for then little is left to gain."""
    old = tuple(group for group in fact.groups if group.driver.value == _OLD)
    if not old or not _could(fact.processor):
        return
    tuned = bool(fact.boosted) and all(group.governor.value == "performance" for group in old)
    severity = Severity.LOW if tuned else Severity.MEDIUM
    reason = "" if not tuned else "medium → low: the governor is performance and boost is on"
    profile = (fact.power_profile.evidence,) if fact.power_profile else ()
    yield Finding(
        code="cpu.driver_acpi",
        subject=_OLD,
        severity=severity,
        base_severity=Severity.MEDIUM,
        severity_reason=reason,
        title=f"{_OLD} drives the CPUs although {fact.processor.name or 'this processor'} can do amd_pstate",
        observed=f"{_OLD} on kernel {fact.kernel}: {_why(fact, limits)}",
        expected="amd-pstate-epp",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.INFERRED,
        evidence=(*(group.driver.evidence for group in old), *(one.evidence for one in fact.parameters), *profile),
        settled_by="a decode benchmark under both drivers, with the governor performance and boost on each time",
        remedy=_remedy(fact, limits),
    )


def _could(processor: Processor) -> bool:
    if processor.vendor != "AuthenticAMD" or processor.family is None:
        return False
    return processor.family > _ZEN or (processor.family == _ZEN and (processor.model or 0) >= _FIRST_WITH_CPPC)


def _why(fact: CpuFrequency, limits: Limits) -> str:
    off = next((one.value for one in fact.parameters if one.value == "amd_pstate=disable"), None)
    if off:
        return f"the command line says {off}"
    if not fact.cppc:
        return "the kernel sees no CPPC (_CPC) objects of the firmware, and without them no parameter helps"
    if older(fact.kernel, str(limits["active_mode_since"].value)):
        return "it is older than the active mode of amd_pstate"
    profile = fact.power_profile.value if fact.power_profile else ""
    if profile in _SERVER_PROFILES and (
        (fact.processor.family or 0) < _TURIN or older(fact.kernel, str(limits["server_default_since"].value))
    ):
        return "on servers of this kind the kernel leaves amd_pstate off unless it is asked for"
    return "why the kernel chose it cannot be told from here; see `dmesg | grep amd_pstate`"


def _remedy(fact: CpuFrequency, limits: Limits) -> Remedy:
    needs = limits["active_mode_since"].value
    firmware = "" if fact.cppc else "First enable CPPC in the firmware (AMD CBS → NBIO → SMU). "
    kernel = f"First install kernel {needs} or newer. " if older(fact.kernel, str(needs)) else ""
    return Remedy(
        now="Without a reboot only governor and boost can be set: cpupower frequency-set -g performance",
        lasting=f"{firmware}{kernel}Add amd_pstate=active to the kernel's command line. GRUB: "
        "GRUB_CMDLINE_LINUX_DEFAULT in /etc/default/grub, then update-grub. systemd-boot on Proxmox VE: the one line "
        "of /etc/kernel/cmdline, then proxmox-boot-tool refresh. Check /proc/cmdline after the reboot.",
        undo="Take the parameter out again and reboot.",
        cost="A reboot. Before it, make sure that the next kernel has an NVIDIA module: dkms status.",
        risk=Risk.R3,
        restarts="the host",
        verify_agent="host.cpu_frequency",
    )
