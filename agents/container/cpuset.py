"""Agent `container.cpuset`: the CPUs and memory nodes that the container may use, by its cgroup on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container.cgroup_files import UNIFIED, folder, old_layout, unified
from gapline.agents.container.cpuset_fact import CpuList, Cpuset, NodeCpus
from gapline.agents.container.cpuset_findings import CODES, not_in_force, split_cores
from gapline.agents.host.numa.cpu_list import members
from gapline.agents.host.numa.reading import NODE_CPUS
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import File, Glob, Source

__all__ = ["AGENT", "Cpuset"]

_NAMES = ("cpuset.cpus", "cpuset.cpus.effective", "cpuset.mems", "cpuset.mems.effective")
SOURCES: Mapping[str, Source] = {
    "unified": UNIFIED,
    "cpuset": Glob(" ".join(f"/sys/fs/cgroup{{cgroup}}/{name}" for name in (*_NAMES, "cpu.stat"))),
    "online": File("/sys/devices/system/cpu/online"),
    "siblings": Glob("/sys/devices/system/cpu/cpu*/topology/thread_siblings_list"),
    "nodes": NODE_CPUS,
}


def parse(captures: Captures) -> Cpuset:
    nodes, siblings = captures.have("nodes"), captures.have("siblings")
    v2 = unified(captures["unified"])
    lists = _lists(captures.need("cpuset")) if v2 else {}
    return Cpuset(
        unified=v2,
        online=_list(captures.need("online").first()),
        nodes=_nodes(nodes) if nodes else (),
        cores=_cores(siblings) if siblings else (),
        asked=lists.get("cpuset.cpus"),
        effective=lists.get("cpuset.cpus.effective"),
        asked_nodes=lists.get("cpuset.mems"),
        effective_nodes=lists.get("cpuset.mems.effective"),
    )


def _lists(capture: Capture) -> dict[str, CpuList]:
    at, files = folder(capture, "cpu.stat"), capture.files()
    if f"{at}/cpu.stat" not in files:
        raise ParseError(capture.first().evidence, "cpu.stat, which every cgroup has")
    return {name: _list(lines[0]) for name in _NAMES if (lines := files.get(f"{at}/{name}"))}


def _list(line: Line) -> CpuList:
    return CpuList(numbers=members(line), evidence=line.evidence)


def _nodes(capture: Capture) -> tuple[NodeCpus, ...]:
    named = ((path.split("/")[-2].removeprefix("node"), lines[0]) for path, lines in capture.files().items())
    return tuple(
        NodeCpus(number=int(number), cpus=members(line))
        for number, line in named
        if number.isascii() and number.isdecimal() and len(number) < 5  # noqa: PLR2004  # at most 1024 nodes
    )


def _cores(capture: Capture) -> tuple[tuple[int, ...], ...]:
    """The threads of each core, once."""
    return tuple(sorted({members(lines[0]) for lines in capture.files().values()} - {()}))


def judge(fact: Cpuset, _: Limits) -> Outcome:
    return judged(fact, tuple(_findings(fact)), tuple(_unseen(fact)))


def _findings(fact: Cpuset) -> Iterator[Finding]:
    yield from not_in_force(fact)
    yield from split_cores(fact)


def _unseen(fact: Cpuset) -> Iterator[Problem]:
    if not fact.unified:
        yield from old_layout("the CPUs of containers")
    elif fact.effective is None:
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail="the cpuset controller is off for the container's cgroup, so its CPUs are those of a cgroup above",
            hint="Where it matters, set `lxc.cgroup2.cpuset.cpus`, which turns the controller on.",
        )


AGENT = Agent(
    id="container.cpuset",
    title="CPUs of the container",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=Cpuset,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
