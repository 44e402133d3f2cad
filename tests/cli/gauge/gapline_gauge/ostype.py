"""Agent `host.ostype`: is it Linux? The example of docs/extending.md."""

from __future__ import annotations

from gapline.orchestrator.model.agent import Agent, Code, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, judged
from gapline.orchestrator.model.source import File


class OsType(Fact):
    """The name of the kernel."""

    name: str


def parse(captures: Captures) -> OsType:
    """One word."""
    line = captures.need("ostype").first()
    if not line.text.isalnum():
        raise ParseError(line.evidence, "the name of a kernel")
    return OsType(name=line.text)


def judge(fact: OsType, _: Limits) -> Outcome:
    """Anything but Linux is found."""
    return judged(fact, () if fact.name == "Linux" else (_foreign(fact),))


def _foreign(fact: OsType) -> Finding:
    return Finding(
        code="ostype.foreign",
        subject="kernel",
        severity=Severity.MEDIUM,
        title="The kernel is not Linux",
        observed=fact.name,
        expected="Linux",
        effect=Effect.PLAUSIBLE,
        settled_by="an installation of Linux",
        confidence=Confidence.VERIFIED,
        evidence=(),
        remedy=Remedy(
            now="Install Linux.",
            lasting="Keep it.",
            undo="Install what was there.",
            cost="A day.",
            risk=Risk.R3,
            restarts="everything",
            verify_agent="host.ostype",
        ),
    )


AGENT = Agent(
    id="host.ostype",
    title="Kernel name",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=OsType,
    sources={"ostype": File("/proc/sys/kernel/ostype")},
    parse=parse,
    judge=judge,
    codes=(Code(code="ostype.foreign", title="Foreign kernel", meaning="Nothing here was written for it."),),
)
