"""Judgements on kernel parameters in force that show no effect, or that the kernel does not know."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gapline.agents.host.boot_loader import where
from gapline.agents.host.boot_parameters import Parameter
from gapline.agents.host.kernel_state.fact import Kernel
from gapline.agents.host.kernel_state.reading import (
    CLOCK,
    CPUFREQ_DRIVER,
    HUGE_PAGES,
    IDLE_DRIVER,
    ISOLATED,
    NOHZ_FULL,
    NUMA_BALANCING,
    SMT,
)
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

CODES = (
    Code(
        code="kernel.parameter_without_effect",
        title="A kernel parameter is in force and its effect is not there",
        meaning="The command line says one thing and the kernel's state another: the kernel or the firmware could not "
        "follow, the parameter is another driver's, or something changed the state after the boot.",
    ),
    Code(
        code="kernel.parameter_ignored",
        title="The kernel does not know this value of a parameter",
        meaning="The kernel logs unknown values once, or not at all, and goes on without them.",
    ),
)
_AMD, _INTEL = "AuthenticAMD", "GenuineIntel"
_REGRESSION = (
    "A report on the linux-pm list of October 2025 (EPYC 4484PX) lost _CPC, and with it amd_pstate, between kernels "
    "6.10 and 6.11: a newer kernel is not always the cure, and booting the previous one is a test."
)


@dataclass(frozen=True, slots=True)
class _Claim:
    """A parameter, the state that shows its effect, and the values of it that agree."""

    pattern: str  # of the whole parameter
    path: str
    agree: Callable[[str], bool]
    expected: str
    severity: Severity
    vendor: str = ""
    hint: str = ""
    unless: str = ""  # a parameter whose presence shows that both drivers were thought of


def _one_of(*values: str) -> Callable[[str], bool]:
    return lambda state: state in values


def _none_of(*values: str) -> Callable[[str], bool]:
    return lambda state: state not in values


_MEDIUM, _LOW = Severity.MEDIUM, Severity.LOW
_CLAIMS = (
    _Claim(
        "amd_pstate=active", CPUFREQ_DRIVER, _one_of("amd-pstate-epp"), "amd-pstate-epp", _MEDIUM, _AMD, _REGRESSION
    ),
    _Claim(
        "amd_pstate=(passive|guided)", CPUFREQ_DRIVER, _one_of("amd-pstate"), "amd-pstate", _MEDIUM, _AMD, _REGRESSION
    ),
    _Claim("intel_pstate=disable", CPUFREQ_DRIVER, _none_of("intel_pstate", "intel_cpufreq"), "another", _LOW, _INTEL),
    _Claim("intel_pstate=passive", CPUFREQ_DRIVER, _one_of("intel_cpufreq"), "intel_cpufreq", _LOW, _INTEL),
    _Claim("intel_pstate=active", CPUFREQ_DRIVER, _one_of("intel_pstate"), "intel_pstate", _MEDIUM, _INTEL),
    _Claim(
        *(r"processor\.max_cstate=[0-9]+", IDLE_DRIVER, _none_of("intel_idle"), "acpi_idle", _MEDIUM, _INTEL),
        hint="It is acpi_idle's parameter; intel_idle has its own, intel_idle.max_cstate.",
        unless="intel_idle.max_cstate",
    ),
    _Claim(
        *(r"intel_idle\.max_cstate=[1-9]", IDLE_DRIVER, _none_of("acpi_idle"), "intel_idle", _MEDIUM),
        hint="It is intel_idle's parameter; acpi_idle has its own, processor.max_cstate.",
        unless="processor.max_cstate",
    ),
    _Claim(r"intel_idle\.max_cstate=0", IDLE_DRIVER, _none_of("intel_idle"), "acpi_idle or none", _LOW, _INTEL),
    _Claim("idle=poll", IDLE_DRIVER, _one_of("none"), "none", _LOW),
    _Claim("numa_balancing=disable", NUMA_BALANCING, _one_of("0"), "0", _LOW),
    _Claim("numa_balancing=enable", NUMA_BALANCING, _none_of("0"), "1", _LOW),
    _Claim("nosmt(=force)?", SMT, _none_of("on"), "off", _LOW),
    _Claim("clocksource=tsc", CLOCK, _one_of("tsc"), "tsc", _MEDIUM),
    _Claim("isolcpus=.+", ISOLATED, bool, "the isolated CPUs", _LOW),
    _Claim("nohz_full=.+", NOHZ_FULL, _none_of("", "(null)"), "the CPUs without ticks", _LOW),
    *(
        _Claim(f"transparent_hugepage={word}", HUGE_PAGES, lambda s, w=f"[{word}]": w in s, f"[{word}]", _LOW)  # type: ignore[misc]
        for word in ("always", "madvise", "never")
    ),
)

_ONLY = {"numa_balancing": "enable|disable", "amd_pstate": "disable|passive|active|guided"}
"""Parameters that take nothing else: Linux mm/mempolicy.c, drivers/cpufreq/amd-pstate.c."""

_NEVER = {"amd_iommu": "on|pt", "intel_iommu": "pt"}
"""Values that never existed; parse_amd_iommu_options logs "Unknown option" for them."""


def without_effect(fact: Kernel) -> Iterator[Finding]:
    """One for each parameter whose state is shown and disagrees. The last of equal names counts."""
    for one in {one.name: one for one in fact.boot.in_force}.values():
        for claim in _CLAIMS:
            state = fact.states.get(claim.path)
            if state is None or not re.fullmatch(claim.pattern, one.text):
                continue
            excused = claim.vendor not in {"", fact.processor.vendor} or fact.boot.value(claim.unless) is not None
            if not excused and not claim.agree(state.value):
                yield _idle(fact, one, claim)


def ignored(fact: Kernel) -> Iterator[Finding]:
    """One for each name with values that the kernel does not know."""
    for one in {one.name: one for one in fact.boot.in_force}.values():
        only, never = _ONLY.get(one.name, ".*"), _NEVER.get(one.name, "")
        values = one.text.partition("=")[2].split(",")
        unknown = [v for v in values if re.fullmatch(never, v) or not re.fullmatch(only, v)]
        if one.name in _ONLY | _NEVER and unknown:
            yield _unknown(fact, one, unknown)


def _idle(fact: Kernel, parameter: Parameter, claim: _Claim) -> Finding:
    state = fact.states[claim.path]
    return Finding(
        code="kernel.parameter_without_effect",
        subject=parameter.name,
        severity=claim.severity,
        title=f"{parameter.text} is in force without its effect",
        observed=f"/proc/cmdline has {parameter.text}, and {claim.path} = {state.value or 'nothing'}",
        expected=claim.expected,
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(parameter.evidence, state.evidence),
        settled_by="a decode benchmark with and without the effect",
        remedy=Remedy(
            now=f"dmesg | grep -iE '{parameter.name.partition('.')[0]}|_CPC|CPPC'   # what the kernel said about it",
            lasting=f"{claim.hint} Remove the cause, or take the parameter out: {where(fact.boot)}. Where a sysctl, a "
            "unit or tuned sets the state after the boot, change it there.".lstrip(),
            undo="Put the parameter back and reboot.",
            cost="A reboot where the command line changes.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent="host.kernel",
        ),
    )


def _unknown(fact: Kernel, parameter: Parameter, unknown: list[str]) -> Finding:
    instead = " For passthrough domains it is iommu=pt." if "pt" in unknown else ""
    harmless = " The AMD IOMMU is on by default." if parameter.text == "amd_iommu=on" else ""
    return Finding(
        code="kernel.parameter_ignored",
        subject=parameter.name,
        severity=Severity.INFO if harmless else Severity.LOW,
        title=f"The kernel ignores {parameter.name}={','.join(unknown)}",
        observed=f"/proc/cmdline has {parameter.text}.{harmless}{instead}",
        expected=f"{_ONLY[parameter.name].replace('|', ', ')}" if parameter.name in _ONLY else "no such value",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=(parameter.evidence, fact.evidence),
        origin="Linux, admin-guide/kernel-parameters.txt, and the parsers: drivers/iommu/amd/init.c, mm/mempolicy.c, "
        "drivers/cpufreq/amd-pstate.c",
        remedy=Remedy(
            now="Nothing without a reboot; it does nothing, good or bad.",
            lasting=f"Correct it or take it out: {where(fact.boot)}.{instead}",
            undo="Put it back.",
            cost="A reboot, whenever there is another reason for one.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent="host.kernel",
        ),
    )
