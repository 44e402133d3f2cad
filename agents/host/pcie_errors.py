"""Have the GPUs or the ports above them counted PCI Express errors, and would Linux know of them?"""

from __future__ import annotations

from gapline.agents.host.aer.fact import PciErrors
from gapline.agents.host.aer.findings import CODES, error_findings
from gapline.agents.host.aer.reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

__all__ = ["AGENT", "PciErrors"]


def judge(fact: PciErrors, limits: Limits) -> Outcome:
    """Without a root port that counts, nothing was seen."""
    findings = tuple(error_findings(fact, limits))
    counts = any(one.root_port for one in fact.counters)
    return judged(fact, findings, () if counts else (_UNCOUNTED,))


_UNCOUNTED = Problem(
    kind=ProblemKind.UNSEEN,
    detail="no root port above the GPUs has error counters in sysfs",
    hint="They need Linux 4.19 and the Advanced Error Reporting capability; pci=noaer takes them away.",
)

AGENT = Agent(
    id="host.pcie_errors",
    title="PCI Express errors on the way to the GPUs",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=PciErrors,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=CODES,
    limits=("correctable_per_hour",),
)
