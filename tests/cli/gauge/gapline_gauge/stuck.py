"""Agent `host.stuck`: a command that does not end and does not listen, to be interrupted at."""

from __future__ import annotations

from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.outcome import Fact, Passed
from gapline.orchestrator.model.source import Script

TEXT = "trap '' TERM HUP INT\nsetsid sleep 601 &\nsleep 602\n"


class Ended(Fact):
    """That it ended, which it never does."""


def parse(captures: Captures) -> Ended:
    """Nothing to read."""
    captures.need("stuck")
    return Ended()


AGENT = Agent(
    id="host.stuck",
    title="Stuck",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=Ended,
    sources={"stuck": Script("stuck", TEXT, timeout=500)},
    parse=parse,
    judge=lambda fact, _: Passed(fact),
    codes=(),
)
