"""Judgements on idle states: deep ones that CPUs enter, and CPUs that never idle at all."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.idle.fact import NO_LIMIT_US, IdleGroup, IdleState, IdleStates
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

CODES = (
    Code(
        code="idle.deep_states",
        title="CPUs enter idle states that take long to leave",
        meaning="A thread that waits for a GPU without spinning lets its CPU sleep, and a CPU in a deep state wakes up "
        "late: every such wait makes a decode step longer. How long the firmware or the driver says it takes is the "
        "state's latency; real wake-ups are often shorter, so only a measurement tells the cost. Threads that spin "
        "(CUDA's default) keep their CPU awake and lose nothing.",
    ),
    Code(
        code="idle.polling",
        title="Idle CPUs spin instead of sleeping",
        meaning="With idle=poll no CPU ever rests: the heat takes boost head-room from the busy ones, and a spinning "
        "sibling takes execution units from its twin (Linux, admin-guide/pm/cpuidle.rst).",
    ),
)
_OWN_PARAMETER = {"intel_idle": "intel_idle.max_cstate", "acpi_idle": "processor.max_cstate"}


def deep_states(fact: IdleStates, wakeup_us: int) -> Iterator[Finding]:
    """One finding for all states of at least that latency that some CPU entered within the window."""
    deep = [
        (group, state)
        for group in fact.groups
        for state in group.states
        if not state.disabled and state.latency_us >= wakeup_us and state.entries
    ]
    if not deep or fact.driver is None:
        return
    yield Finding(
        code="idle.deep_states",
        subject="idle states",
        severity=Severity.MEDIUM,
        title=f"CPUs sleep in {_names(deep)} under {fact.driver.value}, said to take up to "
        f"{max(state.latency_us for _, state in deep)} µs to leave",
        observed=f"within {fact.window_seconds:g} s: " + "; ".join(_told(group, state) for group, state in deep),
        expected=f"only states that take less than {wakeup_us} µs to leave",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(fact.driver.evidence, *(line for _, state in deep for line in state.evidence)),
        settled_by="the gaps between kernel launches in a decode benchmark, alternating these states off and on",
        remedy=_shallow(fact, wakeup_us, deep),
    )


def polling(fact: IdleStates) -> Iterator[Finding]:
    """On the command line: no driver is there to show it."""
    asked = [one for one in fact.parameters if one.text == "idle=poll"]
    if not asked:
        return
    yield Finding(
        code="idle.polling",
        subject="idle=poll",
        severity=Severity.LOW,
        title="Idle CPUs spin instead of sleeping",
        observed="idle=poll on the kernel's command line",
        expected="a limit on the idle states, which keeps wake-ups short and lets idle CPUs rest",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(one.evidence for one in asked),
        origin="Linux, admin-guide/pm/cpuidle.rst calls idle=poll drastic: it can keep CPUs from boosting",
        remedy=Remedy(
            now="Nothing without a reboot.",
            lasting="Replace idle=poll by processor.max_cstate=1 (AMD) or intel_idle.max_cstate=1 (Intel) on the "
            "kernel's command line; host.kernel says in which file.",
            undo="Put idle=poll back and reboot.",
            cost="A reboot.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent="host.idle_states",
        ),
    )


def _shallow(fact: IdleStates, wakeup_us: int, deep: list[tuple[IdleGroup, IdleState]]) -> Remedy:
    driver = fact.driver.value if fact.driver else ""
    fine = [state.number for state in deep[0][0].states if state.latency_us < wakeup_us]
    parameter = _OWN_PARAMETER.get(driver)
    reboot = f", or {parameter}={max(1, *fine)} on the kernel's command line (needs a reboot)" if parameter else ""
    switched_off = any(state.disabled for group in fact.groups for state in group.states)
    back = "   # also enables those that were disabled before" if switched_off else ""
    return Remedy(
        now=f"cpupower idle-set -D {wakeup_us}   # package linux-cpupower; disables states of that latency or more",
        lasting=f"A oneshot unit that runs the same command at boot, or a profile of tuned that limits the latency"
        f"{reboot}. One of them, not two. {_demanded(fact)}".rstrip(),
        undo=f"cpupower idle-set -E{back}",
        cost="More power and heat while CPUs idle, and less boost head-room for the busy ones.",
        risk=Risk.R1,
        restarts="nothing",
        verify_agent="host.idle_states",
    )


def _demanded(fact: IdleStates) -> str:
    """Why states are entered although somebody asked for short wake-ups."""
    parts = [f"{one.text} is on the command line and does not prevent it." for one in fact.parameters]
    if fact.limit and fact.limit.microseconds < NO_LIMIT_US:
        by = f" by {', '.join(fact.limit.holders)}" if fact.limit.holders else ""
        parts.append(f"A limit of {fact.limit.microseconds} µs is demanded{by}.")
    return " ".join(parts)


def _names(deep: list[tuple[IdleGroup, IdleState]]) -> str:
    return ", ".join(dict.fromkeys(state.name for _, state in deep))


def _told(group: IdleGroup, state: IdleState) -> str:
    where = f"CPUs {state.entered_on}" if state.entered_on != group.cpus else f"all of CPUs {group.cpus}"
    return f"{state.name} ({state.latency_us} µs) {state.entries} times on {where}, {state.share:.1%} of the time"
