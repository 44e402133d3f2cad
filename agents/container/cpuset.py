"""Agent `container.cpuset`: the CPUs and memory nodes that the container may use, by its cgroup on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container import init_status
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
from gapline.orchestrator.model.source import File, Glob, Source

__all__ = ["AGENT", "Cpuset"]

_CPUS, _MEMS = "cpuset.cpus.effective", "cpuset.mems.effective"
_NAMES = ("cpuset.cpus", _CPUS, "cpuset.mems", _MEMS)
SOURCES: Mapping[str, Source] = {
    "unified": UNIFIED,
    "cpuset": Glob(" ".join(f"/sys/fs/cgroup{{cgroup}}/{name}" for name in (*_NAMES, "cpu.stat"))),
    "online": File("/sys/devices/system/cpu/online"),
    "siblings": Glob("/sys/devices/system/cpu/cpu*/topology/thread_siblings_list"),
    "nodes": NODE_CPUS,
    "status": init_status.STATUS,
}


def parse(captures: Captures) -> Cpuset:
    nodes, siblings = captures.have("nodes"), captures.have("siblings")
    v2 = unified(captures["unified"])
    lists = _lists(captures.need("cpuset")) if v2 else {}
    if not lists.keys() >= {_CPUS, _MEMS}:
        lists = {**_of_init(captures.need("status")), **lists}
    return Cpuset(
        unified=v2,
        online=_list(captures.need("online").first()),
        nodes=_nodes(nodes) if nodes else (),
        cores=_cores(siblings) if siblings else (),
        asked=lists.get("cpuset.cpus"),
        effective=lists[_CPUS],
        asked_nodes=lists.get("cpuset.mems"),
        effective_nodes=lists[_MEMS],
    )


def _lists(capture: Capture) -> dict[str, CpuList]:
    at, files = folder(capture, "cpu.stat"), capture.files()
    if f"{at}/cpu.stat" not in files:
        raise ParseError(capture.first().evidence, "cpu.stat, which every cgroup has")
    return {name: _list(lines[0]) for name in _NAMES if (lines := files.get(f"{at}/{name}"))}


def _of_init(capture: Capture) -> dict[str, CpuList]:
    """What the scheduler allows the init: the truth as well, where no cpuset of its own says it."""
    rows = init_status.rows(capture)
    names = {_CPUS: "Cpus_allowed_list", _MEMS: "Mems_allowed_list"}
    found: dict[str, CpuList] = {}
    for key, name in names.items():
        line = init_status.need(rows, name, capture)
        allowed = members(line._replace(text=init_status.value(line)))
        found[key] = CpuList(numbers=allowed, evidence=line.evidence)
    return found


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
    """On cgroup v1 what is asked for is not read, and what is allowed still is."""
    return judged(fact, tuple(_findings(fact)), () if fact.unified else old_layout("the cpusets of containers"))


def _findings(fact: Cpuset) -> Iterator[Finding]:
    yield from not_in_force(fact)
    yield from split_cores(fact)


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
