"""May the CPUs run as fast as they can, and at once?"""

from __future__ import annotations

from gapline.agents.host.cpu.ceiling import CODES as CEILING_CODES
from gapline.agents.host.cpu.ceiling import boost_unseen, ceiling_findings
from gapline.agents.host.cpu.driver import CODES as DRIVER_CODES
from gapline.agents.host.cpu.driver import driver_findings
from gapline.agents.host.cpu.fact import CpuFrequency
from gapline.agents.host.cpu.governor import CODES as GOVERNOR_CODES
from gapline.agents.host.cpu.governor import governor_findings
from gapline.agents.host.cpu.reading import SOURCES, read
from gapline.agents.host.cpu.traits import traits
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, Unknown, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

__all__ = ["AGENT", "CpuFrequency"]


def judge(fact: CpuFrequency, limits: Limits) -> Outcome:
    """A virtual machine has nothing to set; bare metal without policies hides it."""
    if not fact.groups:
        return _without_policies(fact)
    findings = (*governor_findings(fact, limits), *ceiling_findings(fact, limits), *driver_findings(fact, limits))
    return judged(fact, findings, boost_unseen(fact))


def _without_policies(fact: CpuFrequency) -> Outcome:
    if fact.processor.virtual:
        reason = "a virtual machine (flag `hypervisor` in /proc/cpuinfo) without cpufreq: its host sets the frequency"
        return NotApplicable(reason, fact)
    detail = "the kernel has no cpufreq policies, so the firmware keeps the frequency to itself, or no driver loaded"
    hint = "Set the firmware's power profile to 'OS control' or 'maximum performance'; see `dmesg | grep -i cpufreq`."
    return Unknown(Problem(kind=ProblemKind.MISSING, detail=detail, hint=hint), fact)


AGENT = Agent(
    id="host.cpu_frequency",
    title="CPU frequency",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=CpuFrequency,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(*GOVERNOR_CODES, *CEILING_CODES, *DRIVER_CODES),
    limits=(
        "governors",
        "pinning_governors",
        "preferences",
        "near_preferences",
        "least_share_of_maximum",
        "active_mode_since",
        "server_default_since",
    ),
    traits=traits,
)
