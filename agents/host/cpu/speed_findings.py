"""Judgements on how fast busy CPUs really ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.cpu.speed import BusyCpu, CpuSpeed, Sensor
from gapline.agents.host.numa.cpu_list import ranges
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="speed.below_base",
        title="Busy CPUs run below their base frequency",
        meaning="The base frequency is what the processor promises for as long as it likes. Busy and below it means "
        "that heat, a power limit or a cap holds it back. On Intel long runs of wide vector instructions do it, too.",
    ),
    Code(
        code="speed.throttled",
        title="The processor throttled itself",
        meaning="Its thermal counters rose while we looked (Intel; /sys/devices/system/cpu/cpu*/thermal_throttle).",
    ),
    Code(
        code="speed.hot",
        title="A processor is close to its critical temperature",
        meaning="Beyond it the processor slows down to protect itself.",
    ),
)
_COOLING = (
    "Clean filters and heat sinks, raise the fans' curve in the BMC, lower the inlet temperature or the power limit."
)


def speed_findings(fact: CpuSpeed, limits: Limits) -> Iterator[Finding]:
    """What was measured, on CPUs that had something to do."""
    share, least = limits.number("busy_share"), limits.number("least_share_of_base")
    slow = [one for one in fact.busy if one.busy_share >= share and one.base_mhz and one.mhz < least * one.base_mhz]
    if slow:
        yield _slow(fact, slow)
    if fact.throttles:
        yield _throttled(fact)
    margin = limits.number("margin_celsius")
    hot = [one for one in fact.sensors if one.critical_celsius and one.critical_celsius - one.celsius < margin]
    if hot:
        yield _hot(hot, margin)


def _slow(fact: CpuSpeed, slow: Sequence[BusyCpu]) -> Finding:
    vector = fact.processor.vendor == "GenuineIntel" and not fact.throttles
    slowest = min(slow, key=lambda one: one.mhz)
    cpus = ranges([one.cpu for one in slow])
    return _finding(
        "speed.below_base",
        Severity.MEDIUM if vector else Severity.HIGH,
        title=f"Busy CPUs {cpus} ran at {slowest.mhz} MHz, below their base of {slowest.base_mhz} MHz",
        observed=f"within {fact.window_seconds:g} s, by the median of {fact.samples} samples: "
        + "; ".join(f"CPU {one.cpu} {one.mhz} MHz, {one.busy_share:.0%} busy" for one in slow[:8]),
        expected="the base frequency at least, under any load",
        evidence=tuple(line for one in slow[:8] for line in one.evidence),
        lasting=f"{_COOLING} Look for a cap (host.cpu_frequency) and for power limits in the firmware.",
        reason="high → medium: no thermal counter rose, and wide vector instructions do this on Intel"
        if vector
        else "",
    )


def _throttled(fact: CpuSpeed) -> Finding:
    cpus = ranges(sorted({one.cpu for one in fact.throttles}))
    return _finding(
        "speed.throttled",
        Severity.HIGH,
        title=f"The processor throttled itself on CPUs {cpus} while we looked",
        observed="; ".join(f"CPU {one.cpu} {one.kind} {one.times} times" for one in fact.throttles[:8]),
        expected="counters that stand still",
        evidence=tuple(line for one in fact.throttles[:8] for line in one.evidence),
        lasting=_COOLING,
    )


def _hot(hot: Sequence[Sensor], margin: float) -> Finding:
    return _finding(
        "speed.hot",
        Severity.MEDIUM,
        title=f"A processor is within {margin:g} °C of its critical temperature",
        observed="; ".join(f"{one.label} {one.celsius:g} of {one.critical_celsius:g} °C" for one in hot),
        expected=f"{margin:g} °C and more below it",
        evidence=tuple(line for one in hot for line in one.evidence),
        lasting=_COOLING,
    )


def _finding(  # noqa: PLR0913 - what differs between three findings of one form
    code: str,
    severity: Severity,
    *,
    title: str,
    observed: str,
    expected: str,
    evidence: tuple[Evidence, ...],
    lasting: str,
    reason: str = "",
) -> Finding:
    return Finding(
        code=code,
        subject="processors",
        severity=severity,
        base_severity=Severity.HIGH if reason else severity,
        severity_reason=reason,
        title=title,
        observed=observed,
        expected=expected,
        effect=Effect.MEASURED,
        confidence=Confidence.VERIFIED,
        evidence=evidence,
        remedy=Remedy(
            now="sensors; ipmitool sdr type temperature; turbostat --quiet --num_iterations 3   # heat, fans, power",
            lasting=lasting,
            undo="Nothing to undo.",
            cost="Noise, or less heat for less speed.",
            risk=Risk.R0,
            restarts="nothing",
            verify_agent="host.cpu_speed",
        ),
    )
