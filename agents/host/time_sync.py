"""Is the clock kept in step, so that the logs of several machines can be laid side by side?"""

from __future__ import annotations

from gapline.agents.host.cpu.fact import Setting
from gapline.orchestrator.model.agent import Agent, Code, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import NotApplicableError, ParseError
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, judged
from gapline.orchestrator.model.source import Command

_SYNCHRONIZED, _SERVICE = "NTPSynchronized", "NTP"
_WORDS = {"yes", "no"}


class TimeSync(Fact):
    """What the kernel thinks of its clock, whoever keeps it: chrony, ntpd, systemd-timesyncd, PTP."""

    synchronized: Setting
    service: Setting | None  # whether a service that systemd knows is enabled for it


def parse(captures: Captures) -> TimeSync:
    """Lines of `Name=yes` or `Name=no`."""
    if "booted with systemd" in captures["clock"].error():
        raise NotApplicableError("this host was not booted with systemd, whose timedatectl is asked")
    capture = captures.need("clock")
    found: dict[str, Setting] = {}
    for line in capture.lines():
        name, equals, value = line.text.partition("=")
        if not equals or value not in _WORDS:
            raise ParseError(line.evidence, "a property of timedatectl that is yes or no")
        found[name] = Setting(value=value, evidence=line.evidence)
    if _SYNCHRONIZED not in found:
        raise ParseError(capture.first().evidence, f"the property {_SYNCHRONIZED}")
    return TimeSync(synchronized=found[_SYNCHRONIZED], service=found.get(_SERVICE))


def judge(fact: TimeSync, _limits: Limits) -> Outcome:
    """The kernel's own word; a service that runs and has no server yet does not count."""
    return judged(fact, () if fact.synchronized.value == "yes" else (_unsynchronized(fact),))


def _unsynchronized(fact: TimeSync) -> Finding:
    on = fact.service is not None and fact.service.value == "yes"
    return Finding(
        code="time.unsynchronized",
        subject="clock",
        severity=Severity.LOW,
        title="The clock is not kept in step",
        observed=f"not synchronized; a time service is {'on and has not managed it' if on else 'not on'}",
        expected="synchronized",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(fact.synchronized.evidence, *((fact.service.evidence,) if fact.service else ())),
        origin="timedatectl(1), adjtimex(2): STA_UNSYNC is set; logs of two such machines cannot be put in order",
        remedy=Remedy(
            now="chronyc sources   # or: timedatectl timesync-status" if on else "apt install chrony",
            lasting="Keep chrony enabled, with servers that this host reaches: /etc/chrony/chrony.conf.",
            undo="systemctl disable --now chrony",
            cost="The clock may jump once when it is set; Proxmox VE clusters want it in step.",
            risk=Risk.R1,
            restarts="nothing",
            verify_agent="host.time_sync",
        ),
    )


AGENT = Agent(
    id="host.time_sync",
    title="Clock in step",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=TimeSync,
    sources={"clock": Command(("timedatectl", "show", "--property=NTP,NTPSynchronized"), package="systemd")},
    parse=parse,
    judge=judge,
    codes=(
        Code(
            code="time.unsynchronized",
            title="The clock is not kept in step",
            meaning="Work is not slower for it. But what happened first, an Xid on this host or a time-out on another, "
            "cannot be told from logs whose clocks drift apart; and containers share their host's clock.",
        ),
    ),
)
