"""Pair agent `pair.gpus_seen`: are the GPUs that a container was given the ones that programs in it see, and use?"""

from __future__ import annotations

import re

from gapline.agents.container.engine import ContainerEngine
from gapline.agents.container.gpus import ShownGpus
from gapline.agents.container.node_fact import DeviceNodes
from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.agents.pair.seen_findings import AGENT_ID, CODES, Given, mig, missing, unused
from gapline.orchestrator.model.agent import Facts, Layer, PairAgent
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, Unknown, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

_NODE = re.compile(r"/dev/nvidia([0-9]{1,4})")


def judge(facts: Facts, _: Limits) -> Outcome:
    """What was given is what nodes the container has; what the host's driver calls them joins the two."""
    nodes, driver, shown = facts.of(DeviceNodes), facts.of(NvidiaDriver), facts.of(ShownGpus)
    given = _given(nodes, driver)
    if not given:
        return NotApplicable("the container has no node of a GPU that the host's driver lists")
    if not shown.gpus:
        detail = f"nvidia-smi shows no GPU in the container: {shown.failure}"
        return Unknown(Problem(kind=ProblemKind.UNSEEN, detail=detail, hint="See container.gpus."), shown)
    findings = (*missing(given, shown), *mig(nodes, shown), *unused(given, facts.get(ContainerEngine)))
    return judged(shown, findings)


def _given(nodes: DeviceNodes, driver: NvidiaDriver) -> Given:
    """By minor; nodes with other numbers than their name says are the business of `pair.device_chain`."""
    minors = {int(m[1]): node for node in nodes.nodes if (m := _NODE.fullmatch(node.path)) and node.is_character}
    return {
        gpu.minor: (minors[gpu.minor], gpu)
        for gpu in driver.gpus
        if gpu.minor is not None and gpu.minor in minors and minors[gpu.minor].minor == gpu.minor
    }


AGENT = PairAgent(
    id=AGENT_ID,
    title="GPUs given and GPUs seen",
    layer=Layer.CONTAINER,
    needs=(DeviceNodes, NvidiaDriver, ShownGpus),
    wants=(ContainerEngine,),
    judge=judge,
    codes=CODES,
)
