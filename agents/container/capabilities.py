"""Agent `container.capabilities`: which capabilities the container has, by name, and which of them an engine misses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container import init_status
from gapline.agents.container.capability_fact import Capabilities, Holder
from gapline.agents.container.capability_findings import CODES, keeps_everything, lacks_nice, lacks_ptrace
from gapline.agents.container.capability_names import has
from gapline.agents.container.gpu_processes import PROCESSES, GpuProcess, container_processes
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.source import File, Source

__all__ = ["AGENT", "Capabilities"]

SOURCES: Mapping[str, Source] = {
    "status": init_status.STATUS,
    "processes": PROCESSES,
    "ptrace_scope": File("/proc/sys/kernel/yama/ptrace_scope"),
}


def parse(captures: Captures) -> Capabilities:
    status, processes = captures.need("status"), container_processes(captures.need("processes"))
    rows = init_status.rows(status)
    bounding, effective = (init_status.need(rows, name, status) for name in ("CapBnd", "CapEff"))
    scope = captures.have("ptrace_scope")
    return Capabilities(
        privileged=processes.init.privileged,
        bounding=init_status.mask(bounding),
        bounding_evidence=bounding.evidence,
        effective=init_status.mask(effective),
        effective_evidence=effective.evidence,
        engines=tuple(_holder(process) for process in processes.gpu),
        ptrace_scope=_scope(scope) if scope else None,
    )


def _holder(process: GpuProcess) -> Holder:
    return Holder(pid=process.pid, name=process.name, effective=process.capabilities, evidence=process.evidence[-1])


def _scope(capture: Capture) -> int:
    line = capture.first()
    if line.text.strip() not in ("0", "1", "2", "3"):
        raise ParseError(line.evidence, "0, 1, 2 or 3")
    return int(line.text)


def judge(fact: Capabilities, _: Limits) -> Outcome:
    return judged(fact, tuple(_findings(fact)))


def _findings(fact: Capabilities) -> Iterator[Finding]:
    if fact.privileged and has(fact.bounding, "SYS_MODULE") and has(fact.bounding, "SYS_RAWIO"):
        yield keeps_everything(fact)
    for name, found in (("SYS_NICE", lacks_nice), ("SYS_PTRACE", lacks_ptrace)):
        without = [one for one in fact.engines if not has(one.effective, name)]
        if without and (name != "SYS_PTRACE" or (fact.ptrace_scope or 0) > 1):
            yield found(fact, without[0])


AGENT = Agent(
    id="container.capabilities",
    title="Capabilities",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=Capabilities,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
