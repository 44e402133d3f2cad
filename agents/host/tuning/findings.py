"""Judgements on tuning services: two that fight, and one that undoes a repair."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.tuning.fact import Service, Tuning, Wish
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="tuning.two_managers",
        title="Two services manage the CPU frequency",
        meaning="Each sets governor and preference when it starts or when its profile changes, so the last one wins "
        "and what is in force changes from boot to boot. TuneD's README calls it incompatible with cpupower and "
        "power-profiles-daemon.",
    ),
    Code(
        code="tuning.undoes_repair",
        title="A tuning service is told to hold the CPUs back",
        meaning="Whatever is set by hand, the service sets its own value again when it starts: at the next boot, or "
        "when somebody restarts it.",
    ),
    Code(
        code="tuning.numad",
        title="numad moves processes between NUMA nodes",
        meaning="It watches processes and binds them anew, which works against an engine that was bound to the node of "
        "its GPUs.",
    ),
    Code(
        code="tuning.irqbalance",
        title="irqbalance places interrupts",
        meaning="It undoes interrupt affinities that were set by hand within seconds. Left alone it is mostly fine.",
    ),
)
_AGENT = "host.tuning_daemons"
# Packages that bring two units count once, and tuned-ppd is a face of tuned's.
_FREQUENCY = {
    **{name: name for name in ("auto-cpufreq", "cpufreqd", "cpupower", "laptop-mode", "ondemand", "tlp", "tuned")},
    "power-profiles-daemon": "power-profiles-daemon",
    "system76-power": "system76-power",
    "cpufrequtils": "cpufrequtils",
    "loadcpufreq": "cpufrequtils",
}
_GOVERNORS = {"governor", "cpu_scaling_governor_on_ac"}
_PREFERENCES = {"energy_performance_preference", "cpu_energy_perf_policy_on_ac"}
_BENCHMARK = "a decode benchmark, alternating what the service sets with the governor performance"
_PERFORMANCE = {
    "tuned": "tuned-adm profile latency-performance",
    "power-profiles-daemon": "powerprofilesctl set performance",
}


def findings(fact: Tuning, limits: Limits) -> Iterator[Finding]:
    """Everything that running services undo; what is installed and stopped is none."""
    yield from _two(fact)
    yield from _undoing(fact, limits)
    yield from _numad(fact)
    yield from _irqbalance(fact)


def _two(fact: Tuning) -> Iterator[Finding]:
    running = fact.running(*_FREQUENCY)
    names = sorted({_FREQUENCY[one.name] for one in running})
    if len(names) < 2:  # noqa: PLR2004 - it takes two
        return
    yield Finding(
        code="tuning.two_managers",
        subject=",".join(names),
        severity=Severity.MEDIUM,
        title=f"{' and '.join(names)} both manage the CPU frequency",
        observed=f"active: {', '.join(one.name for one in running)}",
        expected="one of them",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(one.evidence for one in running),
        origin="README of TuneD: incompatible with cpupower and power-profiles-daemon; uninstall or disable them",
        remedy=_stop(running[0], "Which of them you keep is your choice; keep one."),
    )


def _undoing(fact: Tuning, limits: Limits) -> Iterator[Finding]:
    for one in fact.running(*_FREQUENCY):
        service = _FREQUENCY[one.name]
        wishes = [wish for wish in fact.wishes if wish.service == service]
        bad = [(wish, severity) for wish in wishes if (severity := _severity(wish, wishes, limits))]
        if one.name == service and bad:
            yield _undoes(one, wishes, bad)


def _severity(wish: Wish, wishes: list[Wish], limits: Limits) -> Severity | None:
    """What the wish costs; None where it is fine, or leaves the matter to another wish."""
    first, eager = wish.values[0], limits.words("preferences")
    preferred = [other.values[0] for other in wishes if other.name in _PREFERENCES]
    if wish.name in _GOVERNORS:
        fine = first in limits.words("governors") or (preferred and preferred[0] in eager)
        return None if fine else Severity.MEDIUM
    if wish.name in _PREFERENCES or wish.service == "power-profiles-daemon":
        if first in eager:
            return None
        return Severity.LOW if first in limits.words("near_preferences") else Severity.MEDIUM
    return Severity.LOW if wish.name == "kernel.numa_balancing" and first == "1" else None


def _undoes(service: Service, wishes: list[Wish], bad: list[tuple[Wish, Severity]]) -> Finding:
    severity = min((severity for _, severity in bad), key=lambda one: one.rank)
    profile = [wish for wish in wishes if wish.name == "profile"]
    told = ", ".join(f"{wish.name}={'|'.join(wish.values)}" for wish, _ in bad)
    shown: list[Evidence] = [wish.evidence for wish, _ in bad]
    shown += [wish.evidence for wish in profile if wish.evidence not in shown]
    change = _PERFORMANCE.get(service.name)
    return Finding(
        code="tuning.undoes_repair",
        subject=service.name,
        severity=severity,
        title=f"{service.name} is told to set {told}",
        observed=f"{service.name} is active" + "".join(f", profile {' '.join(wish.values)}" for wish in profile[:1]),
        expected="the governor performance, or no manager",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(service.evidence, *shown),
        settled_by=_BENCHMARK,
        remedy=_stop(service, "", change or ""),
    )


def _numad(fact: Tuning) -> Iterator[Finding]:
    for one in fact.running("numad"):
        yield Finding(
            code="tuning.numad",
            subject="numad",
            severity=Severity.MEDIUM,
            title="numad moves processes between NUMA nodes",
            observed="numad is active",
            expected="inactive where the engine is bound to its GPUs' node",
            effect=Effect.PLAUSIBLE,
            confidence=Confidence.VERIFIED,
            evidence=(one.evidence,),
            settled_by="a decode benchmark with numad stopped and started",
            remedy=_stop(one, "Bind the engine instead: numactl --cpunodebind=N --membind=N."),
        )


def _irqbalance(fact: Tuning) -> Iterator[Finding]:
    for one in fact.running("irqbalance"):
        yield Finding(
            code="tuning.irqbalance",
            subject="irqbalance",
            severity=Severity.INFO,
            title="irqbalance undoes interrupt affinities that are set by hand",
            observed="irqbalance is active",
            expected="either irqbalance or affinities by hand",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=(one.evidence,),
            origin="irqbalance(1): it distributes interrupts over CPUs; IRQBALANCE_BANNED_CPUS keeps it from some",
            remedy=_stop(one, "Only where you place interrupts yourself."),
        )


def _stop(service: Service, advice: str, instead: str = "") -> Remedy:
    now = instead or f"systemctl stop {service.name}"
    lasting = f"{instead}   # is remembered" if instead else f"systemctl disable --now {service.name}"
    return Remedy(
        now=now,
        lasting=f"{lasting}\n{advice}".rstrip(),
        undo="Choose the former profile again." if instead else f"systemctl enable --now {service.name}",
        cost="More power and heat where the CPUs no longer slow down.",
        risk=Risk.R1,
        restarts="nothing",
        verify_agent=_AGENT,
    )
