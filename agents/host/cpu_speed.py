"""Do CPUs that have something to do run as fast as they promise?"""

from __future__ import annotations

from gapline.agents.host.cpu.speed import SOURCES, CpuSpeed, read
from gapline.agents.host.cpu.speed_findings import CODES, speed_findings
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

__all__ = ["AGENT", "CpuSpeed"]


def judge(fact: CpuSpeed, limits: Limits) -> Outcome:
    """The frequency of an idle CPU means nothing, and a guest's is its host's."""
    if fact.processor.virtual:
        reason = "a virtual machine (flag `hypervisor` in /proc/cpuinfo): its host decides and shows how fast CPUs run"
        return NotApplicable(reason, fact)
    findings = tuple(speed_findings(fact, limits))
    if not fact.loaded and not findings:
        reason = f"no CPU was busy within {fact.window_seconds:g} s, and frequencies of idle CPUs mean nothing"
        return NotApplicable(reason, fact)
    return judged(fact, findings, _unseen(fact))


def _unseen(fact: CpuSpeed) -> tuple[Problem, ...]:
    if not fact.loaded or any(one.base_mhz for one in fact.busy):
        return ()
    what = "their base frequency" if fact.busy else "the frequencies of busy CPUs"
    detail = f"the kernel does not show {what}"
    return (Problem(kind=ProblemKind.MISSING, detail=detail, hint="turbostat shows both, as root, under load."),)


AGENT = Agent(
    id="host.cpu_speed",
    title="Measured CPU frequency",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=CpuSpeed,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=CODES,
    limits=("busy_share", "least_share_of_base", "margin_celsius"),
)
