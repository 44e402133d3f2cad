"""Which idle states the CPUs may enter, and which they entered while we looked."""

from __future__ import annotations

from gapline.agents.host.boot_parameters import Parameter
from gapline.agents.host.cpu.fact import Processor, Setting
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact

NO_LIMIT_US = 2_000_000_000
"""What /dev/cpu_dma_latency holds while nobody asks for less (PM_QOS_CPU_LATENCY_DEFAULT_VALUE, linux/pm_qos.h)."""


class IdleState(Fact):
    """One state of the CPUs of a group. Its latency is what the firmware or the driver claims, not a measurement."""

    number: int
    name: str
    latency_us: int
    disabled: bool
    entries: int  # how often the group's CPUs left it within the window
    share: float  # of the window, over the CPUs of the group
    entered_on: str  # the CPUs that did: "0-3"
    evidence: tuple[Evidence, ...]  # of one CPU: latency, and where it was entered the counter before and after


class IdleGroup(Fact):
    """CPUs with the same states, each allowed or disabled alike."""

    cpus: str
    states: tuple[IdleState, ...]


class LatencyLimit(Fact):
    """What a process demands of all CPUs by holding /dev/cpu_dma_latency open."""

    microseconds: int  # `NO_LIMIT_US`: nobody demands anything
    holders: tuple[str, ...]  # "tuned (812)"
    evidence: Evidence


class IdleStates(Fact):
    """States, counters of one window, and what limits them."""

    driver: Setting | None  # None: this kernel has no cpuidle
    governor: Setting | None
    processor: Processor
    groups: tuple[IdleGroup, ...]  # empty: the driver offers no states
    window_seconds: float
    counted: int  # CPUs that left any state within the window; the others were busy or asleep throughout
    limit: LatencyLimit | None  # None: not seen, or no such device
    cpu_limits: tuple[Setting, ...]  # pm_qos_resume_latency_us of single CPUs, where something is demanded
    parameters: tuple[Parameter, ...]  # of the kernel's command line, those about idle states
