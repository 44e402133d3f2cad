"""Pair agent `pair.engine_xid`: did the GPUs that the engine uses report errors since the host started?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.agents.container.engine import ContainerEngine
from gapline.agents.engine.process import EngineProcess
from gapline.agents.host.log.fact import KernelLog, Kind, LogEvent
from gapline.agents.host.log.xid_table import XIDS, Action
from gapline.agents.pair.xid_findings import AGENT_ID, CODES, gpus, processes
from gapline.orchestrator.model.agent import Facts, Layer, PairAgent
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

_PROCESS = re.compile(r"pid='?([0-9]{1,10})'?(?:, name=([^,]{1,64}))?")


def judge(facts: Facts, _: Limits) -> Outcome:
    """By process first, by GPU for what is left."""
    engine, log = facts.of(ContainerEngine), facts.of(KernelLog)
    if not engine.cuda:
        return NotApplicable("no process of the container uses CUDA", engine)
    running = {process.pid: process for process in engine.cuda}
    named = {id(event): process for event in log.of(Kind.XID) if (process := _named(event, running))}
    findings = (*processes(log, named), *gpus(log, engine, named))
    return judged(engine, findings, tuple(_unseen(log)))


def _unseen(log: KernelLog) -> Iterator[Problem]:
    if not log.whole:
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail="the kernel's log does not reach back to the boot, so earlier errors were not seen",
            hint="See host.kernel_log.",
        )


def _named(event: LogEvent, running: Mapping[int, EngineProcess]) -> EngineProcess | None:
    """The running process that an Xid names: by pid, and by name too, because pids are used again."""
    match = _PROCESS.match(event.detail)
    process = running.get(int(match[1])) if match else None
    if match is None or process is None or (event.code in XIDS and XIDS[event.code].action is Action.IGNORE):
        return None
    name = match[2] or ""
    return process if not name or name.startswith(process.name) or process.name.startswith(name) else None


AGENT = PairAgent(
    id=AGENT_ID,
    title="The engine and errors of its GPUs",
    layer=Layer.SYSTEM,
    needs=(ContainerEngine, KernelLog),
    judge=judge,
    codes=CODES,
)
