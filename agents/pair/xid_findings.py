"""Judgements on an engine and the errors of its GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container.engine import ContainerEngine
from gapline.agents.engine.process import EngineProcess
from gapline.agents.host.log.fact import KernelLog, Kind, LogEvent
from gapline.agents.host.log.moment import moment, times
from gapline.agents.host.log.xid_table import ORIGIN
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "pair.engine_xid"
_SHOWN = 6

CODES = (
    Code(
        code="engine_xid.process",
        title="The driver stopped work of a process that still runs",
        meaning="An Xid names the process. What it had on the GPU is lost, and every later CUDA call of it fails, "
        "though the "
        "process may live on and even answer. NVIDIA's catalogue asks for a restart of the application.",
    ),
    Code(
        code="engine_xid.gpu",
        title="GPUs of the engine have reported errors",
        meaning="For information, so that slowness or crashes of the engine are seen together with them. How grave "
        "they "
        "are is said by host.kernel_log.",
    ),
)


def processes(log: KernelLog, named: Mapping[int, EngineProcess]) -> Iterator[Finding]:
    """Processes that run on after the driver stopped their work."""
    for pid, process in {process.pid: process for process in named.values()}.items():
        events = [event for event in log.of(Kind.XID) if id(event) in named and named[id(event)].pid == pid]
        yield Finding(
            code="engine_xid.process",
            subject=events[0].subject,
            severity=Severity.HIGH,
            title=f"{process.name} ({pid}) runs on after Xid {_codes(events)} on {events[0].subject}",
            observed=f"last {moment(log, events[-1])}: {events[-1].detail[:200]}",
            expected="a restart of the engine after such an error",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.INFERRED,
            evidence=tuple(event.evidence for event in events[:_SHOWN]),
            origin=ORIGIN,
            remedy=Remedy(
                now="Restart the inference engine, after what host.kernel_log says about the GPU.",
                lasting="Let the engine's unit restart it when its health check fails (`Restart=on-failure`), and see "
                "host.kernel_log for the cause.",
                undo="Nothing is changed.",
                cost="The engine loads its model again.",
                risk=Risk.R2,
                restarts="the inference engine",
                verify_agent=AGENT_ID,
            ),
        )


def gpus(log: KernelLog, engine: ContainerEngine, named: Mapping[int, EngineProcess]) -> Iterator[Finding]:
    """Other errors of the GPUs that the engine uses."""
    minors = {minor for process in engine.cuda for minor in process.gpus}
    for gpu in engine.gpus:
        events = [
            event
            for event in log.of(Kind.XID, Kind.OFF_BUS)
            if event.subject == gpu.bus_id and id(event) not in named and gpu.minor in minors
        ]
        if events:
            yield Finding(
                code="engine_xid.gpu",
                subject=gpu.bus_id,
                severity=Severity.INFO,
                title=f"GPU {gpu.bus_id}, which the engine uses, has reported errors: Xid {_codes(events)}",
                observed=f"{times(events)} messages since boot, last {moment(log, events[-1])}",
                expected="none",
                effect=Effect.DOCUMENTED,
                confidence=Confidence.VERIFIED,
                evidence=(*(event.evidence for event in events[:_SHOWN]), gpu.evidence),
                origin=ORIGIN,
                remedy=Remedy(
                    now="Read what host.kernel_log says about it.",
                    lasting="As that agent says.",
                    undo="Nothing is changed.",
                    cost="None for looking.",
                    risk=Risk.R0,
                    restarts="nothing",
                    verify_agent="host.kernel_log",
                ),
            )


def _codes(events: list[LogEvent]) -> str:
    return ", ".join(str(code) for code in dict.fromkeys(event.code for event in events) if code is not None) or "none"
