"""Judgements on what caps the frequency: boost switched off, or a maximum below the hardware's."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.cpu.fact import CpuFrequency, CpuGroup, Setting
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.problem import Problem, ProblemKind

CODES = (
    Code(
        code="cpu.boost_off",
        title="CPU boost is switched off",
        meaning="The cores stay at their nominal frequency although power and temperature would allow more. "
        "intel_pstate's switch is inverted: no_turbo = 1 means off.",
    ),
    Code(
        code="cpu.frequency_capped",
        title="The CPUs may not use their whole frequency range",
        meaning="scaling_max_freq lies below cpuinfo_max_freq, often a cap that somebody set once and forgot.",
    ),
)
_BENCHMARK = "a decode benchmark with and without"
_WITHOUT_SWITCH = "cppc_cpufreq"  # Arm servers such as Grace: the firmware boosts, and there is no switch


def ceiling_findings(fact: CpuFrequency, limits: Limits) -> tuple[Finding, ...]:
    """Boost first: with boost off the highest frequency itself reads lower."""
    return (*_boost(fact), *_cap(fact, limits))


def boost_unseen(fact: CpuFrequency) -> tuple[Problem, ...]:
    """No switch says nothing about boost, except where the driver never has one."""
    if fact.boosted is not None or all(group.driver.value == _WITHOUT_SWITCH for group in fact.groups):
        return ()
    return (
        Problem(
            kind=ProblemKind.MISSING,
            detail="nothing says whether boost is on: neither cpufreq/boost nor intel_pstate/no_turbo exists",
            hint="Compare a busy core's frequency with the nominal one: turbostat. Newer kernels show the switch.",
        ),
    )


def _boost(fact: CpuFrequency) -> Iterator[Finding]:
    off = tuple(_off(fact))
    if not off:
        return
    places = ", ".join(dict.fromkeys(one.evidence.source for one in off))
    yield Finding(
        code="cpu.boost_off",
        subject="boost",
        severity=Severity.MEDIUM,
        title="CPU boost is switched off",
        observed=f"{places} = {off[0].value}",
        expected="boost on",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(one.evidence for one in off),
        settled_by=f"{_BENCHMARK} boost",
        remedy=Remedy(
            now="\n".join(f"echo {1 - int(one.value)} > {one.evidence.source}" for one in off)
            + "   # 'Invalid argument' or 'Operation not permitted': the firmware forbids it",
            lasting="Enable Core Performance Boost (AMD) or Turbo (Intel) in the firmware, and remove what switches it "
            "off at boot: a unit, tuned, or a tool of the server's vendor.",
            undo="\n".join(f"echo {one.value} > {one.evidence.source}" for one in off),
            cost="More power and heat under load.",
            risk=Risk.R1,
            restarts="nothing; a change in the firmware needs a reboot",
            verify_agent="host.cpu_frequency",
        ),
    )


def _off(fact: CpuFrequency) -> Iterator[Setting]:
    """The switches that say off. Single policies are named only where the switch for all is on or missing."""
    switches = [one for one, off in ((fact.boost, "0"), (fact.no_turbo, "1")) if one and one.value == off]
    yield from switches
    if not switches:
        yield from (group.boost for group in fact.groups if group.boost and group.boost.value == "0")


def _cap(fact: CpuFrequency, limits: Limits) -> Iterator[Finding]:
    share = limits.number("least_share_of_maximum")
    capped = tuple(group for group in fact.groups if group.allowed_mhz < share * group.highest_mhz)
    if not capped or (fact.no_turbo and fact.no_turbo.value == "1"):  # older intel_pstate shows no_turbo as a cap
        return
    cpus = ",".join(group.cpus for group in capped)
    yield Finding(
        code="cpu.frequency_capped",
        subject="scaling_max_freq",
        severity=Severity.MEDIUM,
        title=f"CPUs {cpus} are capped below their maximum",
        observed="; ".join(dict.fromkeys(_shown(group) for group in capped)),
        expected=f"at least {share:.0%} of the maximum",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(line.evidence for group in capped for line in (group.allowed, group.highest)),
        settled_by=f"{_BENCHMARK} the cap",
        remedy=Remedy(
            now=f"cpupower frequency-set -u {max(group.highest_mhz for group in capped)}MHz",
            lasting="Remove what sets the cap at boot: /etc/default/cpupower, a unit, tuned, or a power limit tool.",
            undo=f"cpupower -c {capped[0].cpus} frequency-set -u {capped[0].allowed_mhz}MHz",
            cost="More power and heat under load.",
            risk=Risk.R1,
            restarts="nothing",
            verify_agent="host.cpu_frequency",
        ),
    )


def _shown(group: CpuGroup) -> str:
    return f"{group.allowed_mhz} of {group.highest_mhz} MHz"
