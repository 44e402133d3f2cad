"""Agent `container.driver_libraries`: the copies of the driver's user space, and which is used."""

from __future__ import annotations

from collections.abc import Mapping

from gapline.agents.container.library_findings import AGENT_ID, CODES, findings
from gapline.agents.container.library_listing import LIBRARIES, DriverLibraries, driver_libraries
from gapline.agents.container.mapped_libraries import MAPPED, mapped_libraries
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.source import Source

__all__ = ["AGENT", "DriverLibraries"]

SOURCES: Mapping[str, Source] = {"libraries": LIBRARIES, "mapped": MAPPED}


def parse(captures: Captures) -> DriverLibraries:
    """What processes have mapped is an addition: the copies are there without it."""
    mapped = mapped_libraries(captures["mapped"]) if captures["mapped"].problem is None else ()
    return driver_libraries(captures.need("libraries"), mapped)


def judge(fact: DriverLibraries, _: Limits) -> Outcome:
    return judged(fact, tuple(findings(fact)))


AGENT = Agent(
    id=AGENT_ID,
    title="Driver libraries in the container",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=DriverLibraries,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
