"""Is the NVIDIA kernel driver loaded, whole, and reachable through the device nodes of this host?"""

from __future__ import annotations

from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.agents.host.nvidia.gpus import CODES as GPU_CODES
from gapline.agents.host.nvidia.gpus import gpu_findings
from gapline.agents.host.nvidia.modules import CODES as MODULE_CODES
from gapline.agents.host.nvidia.modules import module_findings
from gapline.agents.host.nvidia.nodes import CODES as NODE_CODES
from gapline.agents.host.nvidia.nodes import node_findings
from gapline.agents.host.nvidia.reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem

__all__ = ["AGENT", "NvidiaDriver"]


def judge(fact: NvidiaDriver, limits: Limits) -> Outcome:
    """Modules first: without them, nodes and GPUs say nothing."""
    findings = (*module_findings(fact, limits), *node_findings(fact), *gpu_findings(fact))
    unseen = (fact.installed,) if isinstance(fact.installed, Problem) else ()
    return judged(fact, findings, unseen)


AGENT = Agent(
    id="host.nvidia_driver",
    title="NVIDIA driver",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=NvidiaDriver,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(*MODULE_CODES, *NODE_CODES, *GPU_CODES),
    limits=("open_only_devices",),
)
