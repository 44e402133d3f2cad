"""Agent `container.apparmor`: the profile that confines the container, as its host sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.orchestrator.model.agent import Agent, Code, Layer, Scope
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import CollectError, NotApplicableError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, judged
from gapline.orchestrator.model.source import File, Source, Vantage

__all__ = ["AGENT", "AppArmor"]

AGENT_ID = "container.apparmor"
SOURCES: Mapping[str, Source] = {
    "enabled": File("/sys/module/apparmor/parameters/enabled"),
    "label": File("/proc/{init}/attr/current", root=True),
    "inside": File("/proc/1/attr/current", vantage=Vantage.INSIDE),
}
_LABEL = re.compile(r"(\S.{0,400}?)(?: \((enforce|complain|kill|unconfined|user|mixed|prompt)\))?")

CODES = (
    Code(
        code="apparmor.unconfined",
        title="No AppArmor profile confines the container",
        meaning="A matter of security: the profile keeps a container from mounting over the host's files and from "
        "writing to /proc and /sys. It costs no speed and forbids nothing that a GPU needs.",
    ),
    Code(
        code="apparmor.complaining",
        title="The container's AppArmor profile only complains",
        meaning="What the profile forbids is logged and done all the same. It was left so after a search.",
    ),
)


class AppArmor(Fact):
    """The label of the container's init. Stacked labels (`A//&:NS:B`) are kept as they are.

    `inside` is the same label as the container's own policy name space shows it: `unconfined` there is what a process
    under LXC's profile sees, and says nothing.
    """

    profile: str
    mode: str  # empty for `unconfined`
    evidence: Evidence
    inside: str | None

    @property
    def confined(self) -> bool:
        """A profile holds on the host's side."""
        return self.profile != "unconfined"


def parse(captures: Captures) -> AppArmor:
    enabled = captures.have("enabled")
    if enabled is None or enabled.first().text.strip() == "N":
        raise NotApplicableError("the host's kernel runs without AppArmor, so no profile can be enforced")
    if enabled.first().text.strip() != "Y":
        raise ParseError(enabled.first().evidence, "Y or N")
    profile, mode, evidence = _label(captures.need("label"))
    return AppArmor(profile=profile, mode=mode, evidence=evidence, inside=_inside(captures))


def _label(capture: Capture) -> tuple[str, str, Evidence]:
    line = capture.first()
    match = _LABEL.fullmatch(line.text.strip("\0 \n"))
    if match is None or not match[1].isprintable() or (match[2] is None and match[1] != "unconfined"):
        raise ParseError(line.evidence, "a label with its mode, or 'unconfined'")
    return match[1], match[2] or "", line.evidence


def _inside(captures: Captures) -> str | None:
    """It judges nothing, so a container that lets nobody in loses nothing here."""
    try:
        return captures.need("inside").first().text.strip("\0 \n")[:200]
    except CollectError:
        return None


def judge(fact: AppArmor, _: Limits) -> Outcome:
    """The host's view only."""
    return judged(fact, tuple(_findings(fact)))


def _findings(fact: AppArmor) -> Iterator[Finding]:
    if not fact.confined:
        yield _finding(fact, "apparmor.unconfined", "No AppArmor profile confines the container")
    elif fact.mode == "complain":
        yield _finding(fact, "apparmor.complaining", f"The profile {fact.profile[:80]} only complains")


def _finding(fact: AppArmor, code: str, title: str) -> Finding:
    return Finding(
        code=code,
        subject="init",
        severity=Severity.LOW,
        title=title,
        observed=fact.evidence.text,
        expected="LXC's generated profile, in enforce mode",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(fact.evidence,),
        origin="Proxmox VE administration guide, containers, AppArmor; lxc.container.conf(5), lxc.apparmor.profile",
        remedy=Remedy(
            now="Nothing needs to be done for speed.",
            lasting="Remove `lxc.apparmor.profile: unconfined` from the configuration (nested Docker wants `features: "
            "nesting=1`, with `keyctl=1` if unprivileged); a complaining profile: `aa-enforce PROFILE` on the host.",
            undo="Put the line back; `aa-complain PROFILE`.",
            cost="Mounts and writes below /proc and /sys that software inside relied on can be denied.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


AGENT = Agent(
    id=AGENT_ID,
    title="AppArmor profile",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=AppArmor,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
