"""Do the CPUs sleep so deeply that waking up makes a decode step longer?"""

from __future__ import annotations

from gapline.agents.host.idle.fact import IdleStates
from gapline.agents.host.idle.findings import CODES, deep_states, polling
from gapline.agents.host.idle.reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

__all__ = ["AGENT", "IdleStates"]

_HARDWARE = frozenset({"acpi_idle", "intel_idle"})
"""Drivers that put the CPU itself to sleep. The others that guests have (haltpoll, none) leave it to their host."""


def judge(fact: IdleStates, limits: Limits) -> Outcome:
    """What a guest's halts cost is decided on its host."""
    driver = fact.driver.value if fact.driver else "none"
    if fact.processor.virtual and driver not in _HARDWARE:
        reason = "a virtual machine (flag `hypervisor` in /proc/cpuinfo)"
        return NotApplicable(f"{reason} with idle driver {driver}: its host decides how deeply CPUs sleep", fact)
    wakeup_us = int(limits.number("wakeup_us"))
    return judged(fact, (*deep_states(fact, wakeup_us), *polling(fact)), _uncounted(fact, wakeup_us))


def _uncounted(fact: IdleStates, wakeup_us: int) -> tuple[Problem, ...]:
    """Where deep states are allowed, silence means something only if counters moved at all."""
    allowed = [s for group in fact.groups for s in group.states if not s.disabled and s.latency_us >= wakeup_us]
    if fact.counted or not allowed:
        return ()
    return (
        Problem(
            kind=ProblemKind.UNSEEN,
            detail=f"no CPU left an idle state within {fact.window_seconds:g} s: all were busy, or asleep throughout",
            hint="Run again under the usual load: gapline rerun host.idle_states",
        ),
    )


AGENT = Agent(
    id="host.idle_states",
    title="Idle states of the CPUs",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=IdleStates,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=CODES,
    limits=("wakeup_us",),
)
