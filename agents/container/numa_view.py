"""Agent `container.numa_view`: the NUMA nodes that the container sees, and those whose memory it may use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.agents.container import init_status
from gapline.agents.container.cpuset_fact import CpuList
from gapline.agents.host.numa.cpu_list import members, ranges
from gapline.orchestrator.model.agent import Agent, Code, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import NotApplicableError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, judged
from gapline.orchestrator.model.source import File, Glob, Source, Vantage

__all__ = ["AGENT", "NumaView"]

AGENT_ID = "container.numa_view"
_NODE = "/sys/devices/system/node"
_MEMORY = File(f"{_NODE}/has_memory")
SOURCES: Mapping[str, Source] = {
    "memory": _MEMORY,
    "inside": Glob(f"{_NODE}/has_memory {_NODE}/node*/cpulist", vantage=Vantage.INSIDE),
    "status": init_status.STATUS,
}
_FOLDER = re.compile(rf"{_NODE}/node([0-9]{{1,4}})/cpulist")

CODES = (
    Code(
        code="numa_view.hidden",
        title="The container does not see the host's NUMA nodes",
        meaning="/sys/devices/system/node is the host's in every LXC container. Where it is masked, libnuma, hwloc and "
        "NCCL take the machine for one node, and nothing is placed near its GPU.",
    ),
    Code(
        code="numa_view.confined",
        title="The container may use the memory of some NUMA nodes only",
        meaning="Mems_allowed_list of its init lacks nodes that the host has. The kernel serves all of its memory from "
        "the others, although the container sees all nodes. It may be meant, to keep memory near its GPUs.",
    ),
)


class NumaView(Fact):
    """Nodes with memory: on the host, as listed inside, and those that the init may use."""

    host: CpuList
    seen: tuple[int, ...]
    seen_evidence: Evidence | None
    allowed: CpuList


def parse(captures: Captures) -> NumaView:
    memory = captures.have("memory")
    host = members(memory.first()) if memory else ()
    if memory is None or len(host) < 2:  # noqa: PLR2004  # one node is no question of nodes
        raise NotApplicableError("the host has one NUMA node with memory")
    inside = captures.have("inside")
    status = captures.need("status")
    line = init_status.need(init_status.rows(status), "Mems_allowed_list", status)
    allowed = members(line._replace(text=init_status.value(line)))
    if not allowed:
        raise ParseError(line.evidence, "a list of nodes")
    files = inside.files() if inside else {}
    for lines in files.values():
        members(lines[0])
    seen = sorted(int(match[1]) for path in files if (match := _FOLDER.fullmatch(path)))
    first = next(iter(files.values()), None)
    if inside and inside.out and first is None:
        raise ParseError(inside.first().evidence, "lists of CPUs of nodes")
    return NumaView(
        host=CpuList(numbers=host, evidence=memory.first().evidence),
        seen=tuple(seen),
        seen_evidence=first[0].evidence if first else None,
        allowed=CpuList(numbers=allowed, evidence=line.evidence),
    )


def judge(fact: NumaView, _: Limits) -> Outcome:
    return judged(fact, tuple(_findings(fact)))


def _findings(fact: NumaView) -> Iterator[Finding]:
    hidden = tuple(sorted(set(fact.host.numbers) - set(fact.seen)))
    if hidden:
        yield _finding(
            "numa_view.hidden",
            Severity.LOW,
            f"The container does not see NUMA node {ranges(hidden)} of the host",
            f"inside: {ranges(fact.seen) or 'none'}",
            (fact.host.evidence, *((fact.seen_evidence,) if fact.seen_evidence else ())),
        )
    closed = tuple(sorted(set(fact.host.numbers) - set(fact.allowed.numbers)))
    if closed:
        yield _finding(
            "numa_view.confined",
            Severity.INFO,
            f"The container may not use memory of NUMA node {ranges(closed)}",
            fact.allowed.evidence.text,
            (fact.allowed.evidence, fact.host.evidence),
        )


def _finding(code: str, severity: Severity, title: str, observed: str, evidence: tuple[Evidence, ...]) -> Finding:
    return Finding(
        code=code,
        subject="nodes",
        severity=severity,
        title=title,
        observed=observed,
        expected="all nodes with memory, unless the container is bound to a node on purpose",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=evidence,
        settled_by="copies between host and GPU with memory bound to each node",
        remedy=Remedy(
            now="See `lxc.mount` and `lxc.cgroup2.cpuset.mems` in the container's configuration.",
            lasting="Remove the line that masks /sys or closes nodes; the file is read at every start.",
            undo="Put the line back.",
            cost="Memory of the container can then lie on every node.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


AGENT = Agent(
    id=AGENT_ID,
    title="NUMA nodes as the container sees them",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=NumaView,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
