"""Judgements on governors and energy preferences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gapline.agents.host.cpu.fact import CpuFrequency, CpuGroup, Setting
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="cpu.governor",
        title="A governor holds CPUs back",
        meaning="Between two GPU steps the CPU prepares the next one, so a CPU that clocks up late delays every token. "
        "`powersave` of the general drivers pins the lowest frequency; the governors that follow the load raise it "
        "only afterwards (Linux, admin-guide/pm/cpufreq.rst).",
    ),
    Code(
        code="cpu.energy_preference",
        title="The energy preference leans away from performance",
        meaning="Under intel_pstate and amd-pstate in active mode the hardware picks the frequency, and this "
        "preference tells it how eagerly (Linux, admin-guide/pm/intel_pstate.rst and amd-pstate.rst).",
    ),
)
_BENCHMARK = "a decode benchmark, alternating this setting with the governor performance"


@dataclass(frozen=True, slots=True)
class _Held:
    """One value that some CPUs have, and how bad it is."""

    code: str
    kind: str
    groups: tuple[CpuGroup, ...]
    shown: tuple[Setting, ...]
    base: Severity
    origin: str = ""

    @property
    def value(self) -> str:
        return self.shown[0].value


def governor_findings(fact: CpuFrequency, limits: Limits) -> tuple[Finding, ...]:
    """One for each governor, or preference, that some CPUs have and should not."""
    return tuple(_finding(fact, held) for held in (*_governors(fact, limits), *_preferences(fact, limits)))


def _governors(fact: CpuFrequency, limits: Limits) -> Iterator[_Held]:
    """A dynamic driver's governor is judged by its preference, where the hardware takes one."""
    fine, pinned = limits.words("governors"), limits["pinning_governors"]
    bad = [group for group in fact.groups if group.governor.value not in fine]
    bad = [group for group in bad if not group.is_dynamic or group.preference is None]
    for governor in dict.fromkeys(group.governor.value for group in bad):
        groups = tuple(group for group in bad if group.governor.value == governor)
        shown = tuple(group.governor for group in groups)
        if all(group.is_dynamic for group in groups):
            yield _Held("cpu.governor", "Governor", groups, shown, Severity.LOW)
        elif governor in limits.words("pinning_governors"):
            yield _Held("cpu.governor", "Governor", groups, shown, Severity.HIGH, pinned.origin)
        else:
            yield _Held("cpu.governor", "Governor", groups, shown, Severity.MEDIUM)


def _preferences(fact: CpuFrequency, limits: Limits) -> Iterator[_Held]:
    fine, near = limits.words("preferences"), limits.words("near_preferences")
    held = [group for group in fact.groups if group.is_dynamic and group.governor.value != "performance"]
    for preference in dict.fromkeys(group.preference.value for group in held if group.preference):
        if preference in fine:
            continue
        groups = tuple(group for group in held if group.preference and group.preference.value == preference)
        shown = tuple(group.preference for group in groups if group.preference)
        severity = Severity.LOW if preference in near else Severity.MEDIUM
        yield _Held("cpu.energy_preference", "Energy preference", groups, shown, severity)


def _finding(fact: CpuFrequency, held: _Held) -> Finding:
    """The title and the severity say when only a part of the CPUs is concerned: that is rarely meant."""
    cpus = ",".join(group.cpus for group in held.groups)
    mixed = any(_value(group, held.code) != held.value for group in fact.groups)
    severity = Severity.MEDIUM if mixed and held.base is Severity.LOW else held.base
    pairs = zip(held.groups, held.shown, strict=True)
    return Finding(
        code=held.code,
        subject=held.value,
        severity=severity,
        base_severity=held.base,
        severity_reason="" if severity is held.base else f"{held.base} → {severity}: the CPUs differ from each other",
        title=f"{held.kind} {held.value} on CPUs {cpus}" + (", another one on the rest (mixed)" if mixed else ""),
        observed=f"{held.value} under {held.groups[0].driver.value} on CPUs {cpus}",
        expected="performance on all CPUs",
        effect=Effect.DOCUMENTED if held.origin else Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(line for group, one in pairs for line in (one.evidence, group.driver.evidence)),
        origin=held.origin,
        settled_by="" if held.origin else _BENCHMARK,
        remedy=_performance(held.groups[0], held.value),
    )


def _value(group: CpuGroup, code: str) -> str:
    if code == "cpu.governor":
        return group.governor.value
    return group.preference.value if group.preference else ""


def _performance(group: CpuGroup, value: str) -> Remedy:
    governor = group.governor.value
    back = f"cpupower frequency-set -g {governor}"
    if value != governor:  # while the governor is performance the preference cannot be written (EBUSY)
        back += f"; echo {value} | tee /sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference"
    return Remedy(
        now="cpupower frequency-set -g performance   # package linux-cpupower; sets every CPU",
        lasting="A oneshot unit that runs the same command at boot, or one profile of tuned; not both, since two "
        "managers overwrite each other.",
        undo=back,
        cost="More power and heat while the CPUs idle.",
        risk=Risk.R1,
        restarts="nothing",
        verify_agent="host.cpu_frequency",
    )
