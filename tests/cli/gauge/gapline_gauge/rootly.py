"""Agent `host.rootly`: readings that only root can make, one of each kind that sudoers can name."""

from __future__ import annotations

from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.outcome import Fact, Passed
from gapline.orchestrator.model.source import Command, File, Glob, Stat


class Rootly(Fact):
    """Who read, and how much there was."""

    uid: str
    lines: int


def parse(captures: Captures) -> Rootly:
    """All of them are needed."""
    texts = [captures.need(name).text for name in ("file", "glob", "stat")]
    return Rootly(uid=captures.need("command").text.strip(), lines=sum(text.count("\n") for text in texts))


AGENT = Agent(
    id="host.rootly",
    title="Only for root",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=Rootly,
    sources={
        "file": File("/proc/sys/fs/protected_hardlinks", root=True),
        "glob": Glob("/proc/sys/fs/protected_*links", root=True),
        "stat": Stat("/root/. /root/..", root=True),
        "command": Command(("id", "-u"), root=True),
    },
    parse=parse,
    judge=lambda fact, _: Passed(fact),
    codes=(),
)
