"""Agent `container.device_nodes`: the GPU nodes in the container, and what its root may do with them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gapline.agents.container.access_test import ACCESS, AccessTest, access_test
from gapline.agents.container.node_fact import DeviceNodes
from gapline.agents.container.node_findings import CODES, findings
from gapline.agents.device_node import DeviceNode, device_nodes
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import CollectError
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Source, Stat

__all__ = ["AGENT", "DeviceNodes"]

_ROOT = re.compile(r"/proc/[^/]+/root")
_ALWAYS = "/dev/null"  # every container has it: without it the init is gone and an empty list would mean nothing

SOURCES: Mapping[str, Source] = {
    # Metadata only, links not followed: what a hostile container puts at these paths cannot lead elsewhere.
    "nodes": Stat(
        "/proc/{init}/root/dev/null /proc/{init}/root/dev/nvidia* /proc/{init}/root/dev/nvidia-caps/*", root=True
    ),
    "access": ACCESS,
}


def parse(captures: Captures) -> DeviceNodes:
    capture = captures.need("nodes")
    nodes = tuple(_inside(node) for node in device_nodes(capture))
    if not any(node.path == _ALWAYS for node in nodes):
        raise CollectError(capture.target, capture.shown, _gone(capture))
    test, untested = _test(captures)
    return DeviceNodes(nodes=tuple(node for node in nodes if node.path != _ALWAYS), test=test, untested=untested)


def _inside(node: DeviceNode) -> DeviceNode:
    return node.model_copy(update={"path": _ROOT.sub("", node.path, count=1)})


def _gone(capture: Capture) -> Problem:
    return Problem(
        kind=ProblemKind.NOT_RUNNING,
        detail=f"{capture.shown.split()[0]} is not there: the container ended meanwhile, or has no /dev",
    )


def _test(captures: Captures) -> tuple[AccessTest | None, Problem | None]:
    try:
        return access_test(captures.need("access")), None
    except CollectError as error:
        return None, error.problem


def judge(fact: DeviceNodes, _: Limits) -> Outcome:
    return judged(fact, tuple(findings(fact)), _unseen(fact))


def _unseen(fact: DeviceNodes) -> tuple[Problem, ...]:
    if not fact.nodes:
        return ()
    if fact.untested is not None:
        return (fact.untested,)
    undecided = [node.path for node in fact.test.nodes if node.granted is None] if fact.test else []
    if not any(re.fullmatch(r"/dev/nvidia\d+", path) for path in undecided):
        return ()
    problem = Problem(
        kind=ProblemKind.UNSEEN,
        detail=f"the container's shell ({fact.test.shell if fact.test else ''}) does not ask the kernel whether a node "
        "may be used, and GPUs are not opened for a test",
        hint="Install dash or bash in the container; until then modes and device rules decide.",
    )
    return (problem,)


AGENT = Agent(
    id="container.device_nodes",
    title="GPU nodes in the container",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=DeviceNodes,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
