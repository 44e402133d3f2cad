"""Is the NVIDIA kernel driver loaded, whole, and reachable through the device nodes of this host?"""

from __future__ import annotations

from gapline.agents.host.nvidia.fabric import CODES as FABRIC_CODES
from gapline.agents.host.nvidia.fabric import fabric_findings
from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.agents.host.nvidia.flavour import CODES as FLAVOUR_CODES
from gapline.agents.host.nvidia.flavour import flavour_findings, unfit
from gapline.agents.host.nvidia.gpus import CODES as GPU_CODES
from gapline.agents.host.nvidia.gpus import gpu_findings
from gapline.agents.host.nvidia.libraries import CODES as LIBRARY_CODES
from gapline.agents.host.nvidia.libraries import library_findings
from gapline.agents.host.nvidia.modules import CODES as MODULE_CODES
from gapline.agents.host.nvidia.modules import module_findings
from gapline.agents.host.nvidia.nodes import CODES as NODE_CODES
from gapline.agents.host.nvidia.nodes import node_findings
from gapline.agents.host.nvidia.parameters import CODES as PARAMETER_CODES
from gapline.agents.host.nvidia.parameters import parameter_findings
from gapline.agents.host.nvidia.reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.model.trait import Trait

__all__ = ["AGENT", "NvidiaDriver"]


def judge(fact: NvidiaDriver, limits: Limits) -> Outcome:
    """Modules first: without them, nodes and GPUs say nothing."""
    strangers = unfit(fact, limits)
    modules = (*module_findings(fact), *flavour_findings(fact, strangers, limits), *library_findings(fact))
    parts = (*node_findings(fact), *gpu_findings(fact, strangers), *fabric_findings(fact), *parameter_findings(fact))
    findings = (*modules, *parts)
    unseen = (fact.installed,) if isinstance(fact.installed, Problem) else ()
    return judged(fact, findings, unseen)


def traits(fact: NvidiaDriver) -> tuple[Trait, ...]:
    """The module that runs, where one does. Which flavour is the right one depends on the GPUs."""
    if fact.loaded is None:
        return ()
    models = ", ".join(sorted({gpu.model for gpu in fact.gpus}))
    version, flavour, line = fact.loaded.version, fact.loaded.flavour.value, fact.loaded.evidence
    return (
        Trait(name="NVIDIA driver", value=version, evidence=line),
        Trait(name="flavour of the NVIDIA driver", value=flavour, among=models, evidence=line),
    )


AGENT = Agent(
    id="host.nvidia_driver",
    title="NVIDIA driver",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=NvidiaDriver,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(
        *MODULE_CODES,
        *FLAVOUR_CODES,
        *LIBRARY_CODES,
        *NODE_CODES,
        *GPU_CODES,
        *FABRIC_CODES,
        *PARAMETER_CODES,
    ),
    limits=("open_only_devices", "closed_only_devices"),
    traits=traits,
)
