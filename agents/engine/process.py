"""The engine's processes as facts, and the reader of the script's output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from gapline.agents.gpu_users import gpu_users, minors
from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class Setting(Fact):
    """An option or a variable. None: its value was withheld on the target; empty: it has none."""

    name: str  # options with hyphens only
    value: str | None
    evidence: Evidence


class EngineProcess(Fact):
    """One process. `cuda`: it holds the UVM node; the others only started it."""

    pid: int
    parent: int
    cuda: bool
    name: str
    gpus: tuple[int, ...]  # minors of the GPU nodes it holds open
    threads: int | None
    rss_kib: int | None
    swap_kib: int | None
    cpus: int | None  # how many it may run on
    cpus_allowed: str
    mems_allowed: str
    cgroup: str
    options: tuple[Setting, ...]
    environment: tuple[Setting, ...]
    memory_kib: dict[int, int]  # by NUMA node, without mapped files; empty where it was not read
    evidence: dict[str, Evidence]  # by the name that /proc/PID/status gives, and "process"


class EngineGpu(Fact):
    """A GPU of the host. `node` is None on machines with one NUMA node, which the kernel writes as -1."""

    minor: int
    bus_id: str
    node: int | None
    evidence: Evidence


_START = re.compile(r"(cuda|above)\|([1-9][0-9]{0,9})")
_ROW = re.compile(r"(status|parent|cgroup|option|environment|numa)\|(.*)")
_STATUS = re.compile(r"([A-Za-z_]{1,20}): ?(.*)")
_SETTING = re.compile(r"([A-Za-z0-9_-]{1,60})\|(.{0,200})")
_NUMA = re.compile(r"([0-9]{1,4})\|([0-9]{1,15})")
_GPU = re.compile(r"gpu\|([0-9]{1,4})?\|([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\|(-1|[0-9]{1,4})?")
_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")

Rows = list[tuple[str, Line]]


def engine_processes(capture: Capture) -> tuple[tuple[EngineProcess, ...], tuple[EngineGpu, ...], bool]:
    """The processes, the host's GPUs, and whether the processes could be looked for.

    Raises:
        ParseError: a line has an unknown form, or the output stops early.
    """
    lines = list(capture.lines())
    if not lines or lines[-1].text != "end":
        raise ParseError(lines[-1].evidence if lines else capture.first().evidence, "'end' as the last line")
    users = gpu_users(lines)
    gpus = tuple(gpu for line in lines if line.text.startswith("gpu|") for gpu in _gpu(line))
    processes = tuple(_process(at, rows, users) for at, rows in _blocks(lines[:-1]))
    return processes, gpus, all(line.text != "no-cgroup|" for line in lines)


def cpu_count(text: str) -> int | None:
    """How many CPUs a list such as "0-31,64" names; None where it is none."""
    matches = [_RANGE.fullmatch(part) for part in text.split(",")]
    if not text or None in matches:
        return None
    return sum(int(m[2] or m[1]) - int(m[1]) + 1 for m in matches if m)


def _gpu(line: Line) -> Iterator[EngineGpu]:
    match = _GPU.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "'gpu|MINOR|BUS ID|NODE'")
    if match[1] is not None:
        node = int(match[3]) if match[3] not in (None, "-1") else None
        yield EngineGpu(minor=int(match[1]), bus_id=match[2], node=node, evidence=line.evidence)


def _blocks(lines: list[Line]) -> Iterator[tuple[Line, Rows]]:
    block: tuple[Line, Rows] | None = None
    for line in lines:
        if line.text == "no-cgroup|" or line.text.startswith(("fd|", "gpu|")):
            continue
        if _START.fullmatch(line.text):
            if block:
                yield block
            block = (line, [])
        elif (match := _ROW.fullmatch(line.text)) and block:
            block[1].append((match[1], line._replace(text=match[2])))
        else:
            raise ParseError(line.evidence, "a line of a process")
    if block:
        yield block


def _process(at: Line, rows: Rows, users: Mapping[int, frozenset[str]]) -> EngineProcess:
    kind, _, number = at.text.partition("|")
    pid = int(number)
    status = {m[1]: line._replace(text=m[2]) for line in _of(rows, "status") if (m := _STATUS.fullmatch(line.text))}
    text = {name: line.text for name, line in status.items()}
    parent = next((line.text for line in _of(rows, "parent")), "")
    return EngineProcess(
        pid=pid,
        parent=_number(parent) or 0,
        cuda=kind == "cuda",
        name=text.get("Name", "")[:64],
        gpus=minors(users.get(pid, ())) if kind == "cuda" else (),
        threads=_number(text.get("Threads", "")),
        rss_kib=_number(text.get("VmRSS", "").removesuffix(" kB")),
        swap_kib=_number(text.get("VmSwap", "").removesuffix(" kB")),
        cpus=cpu_count(text.get("Cpus_allowed_list", "")),
        cpus_allowed=text.get("Cpus_allowed_list", "")[:400],
        mems_allowed=text.get("Mems_allowed_list", "")[:100],
        cgroup=next((line.text[:300] for line in _of(rows, "cgroup")), ""),
        options=tuple(_setting(line) for line in _of(rows, "option")),
        environment=tuple(_setting(line) for line in _of(rows, "environment")),
        memory_kib=dict(_node(line) for line in _of(rows, "numa")),
        evidence={"process": at.evidence, **{name: line.evidence for name, line in status.items()}},
    )


def _of(rows: Sequence[tuple[str, Line]], kind: str) -> Iterator[Line]:
    return (line for name, line in rows if name == kind)


def _setting(line: Line) -> Setting:
    match = _SETTING.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "'NAME|VALUE'")
    name, value = match.groups()
    if name.startswith("-"):
        name = name.replace("_", "-")
    return Setting(name=name, value=None if value == "?" else value, evidence=line.evidence)


def _node(line: Line) -> tuple[int, int]:
    match = _NUMA.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "'numa|NODE|KIB'")
    return int(match[1]), int(match[2])


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) else None
