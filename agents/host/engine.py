"""Agent `host.engine`: inference processes on the bare host, outside of every LXC container."""

from __future__ import annotations

from collections.abc import Mapping

from gapline.agents.engine.fact import Engine, logs, read
from gapline.agents.engine.judgement import LIMITS, codes, findings
from gapline.agents.engine.log import HOST_LOG
from gapline.agents.engine.reading import HOST_ENGINE
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, judged
from gapline.orchestrator.model.source import Source

AGENT_ID, AREA = "host.engine", "host_engine"
SOURCES: Mapping[str, Source] = {"engine": HOST_ENGINE, "log": HOST_LOG}


class HostEngine(Engine):
    """The engines of a host: services of systemd, Docker containers, programs started by hand."""


def parse(captures: Captures) -> HostEngine:
    """Processes must be seen; logs need not be."""
    processes, gpus, searched = read(captures)
    said, problem = logs(captures)
    return HostEngine(processes=processes, gpus=gpus, searched=searched, logs=said, log_problem=problem)


def judge(fact: HostEngine, limits: Limits) -> Outcome:
    """Most hosts of containers have no engine of their own: then the question does not arise."""
    found = findings(fact, limits, AREA, AGENT_ID)
    if not fact.cuda and not found:
        return NotApplicable("no process outside of LXC containers uses CUDA", fact)
    return judged(fact, found, (fact.log_problem,) if fact.log_problem else ())


AGENT = Agent(
    id=AGENT_ID,
    title="Inference engine on the host itself",
    layer=Layer.KERNELS,
    scope=Scope.HOST,
    fact=HostEngine,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=codes(AREA),
    limits=LIMITS,
)
