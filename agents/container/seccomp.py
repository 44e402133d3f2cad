"""Agent `container.seccomp`: whether system calls of the container are filtered, and by how many filters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container import init_status
from gapline.agents.container.capability_names import has
from gapline.agents.container.gpu_processes import PROCESSES, GpuProcess, container_processes
from gapline.agents.container.seccomp_findings import CODES, further_filter, off
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import CollectError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, judged
from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.model.source import Source

__all__ = ["AGENT", "Seccomp"]

SOURCES: Mapping[str, Source] = {
    "status": init_status.STATUS,
    "inside": init_status.STATUS_INSIDE,
    "processes": PROCESSES,
}
_MODES = {0: "off", 1: "strict", 2: "filter"}


class SeccompState(Fact):
    """Mode and number of filters of one view on the init. None: the kernel does not tell (filters: before 5.9)."""

    mode: str
    filters: int | None
    evidence: Evidence


class Seccomp(Fact):
    """Of the init from the host and from inside, and GPU processes with more filters than the init has."""

    init: SeccompState
    inside: SeccompState | Problem  # the problem: why it was not seen from there
    privileged: bool
    further: tuple[GpuProcess, ...]


def parse(captures: Captures) -> Seccomp:
    init = _state(captures.need("status"))
    processes = container_processes(captures.need("processes"))
    return Seccomp(
        init=init,
        inside=_inside(captures),
        privileged=processes.init.privileged,
        further=tuple(one for one in processes.gpu if one.seccomp_filters and one.seccomp_filters > (init.filters or 0))
        if init.filters is not None
        else (),
    )


def _inside(captures: Captures) -> SeccompState | Problem:
    try:
        return _state(captures.need("inside"))
    except CollectError as error:
        return error.problem


def _state(capture: Capture) -> SeccompState:
    rows = init_status.rows(capture)
    line = init_status.need(rows, "Seccomp", capture)
    mode = _MODES.get(init_status.number(line))
    if mode is None:
        raise ParseError(line.evidence, "0, 1 or 2")
    filters = rows.get("Seccomp_filters")
    return SeccompState(mode=mode, filters=init_status.number(filters) if filters else None, evidence=line.evidence)


def judge(fact: Seccomp, _: Limits) -> Outcome:
    """The host's view decides; the one from inside is told beside it."""
    return judged(fact, tuple(_findings(fact)))


def _findings(fact: Seccomp) -> Iterator[Finding]:
    if fact.init.mode == "off":
        yield off(fact.init.evidence, privileged=fact.privileged)
    gated = [one for one in fact.further if not has(one.capabilities, "SYS_NICE")]
    for process in gated[:1]:
        yield further_filter(process, fact.init.evidence)


AGENT = Agent(
    id="container.seccomp",
    title="Filters on system calls",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=Seccomp,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
