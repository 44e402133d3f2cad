"""Small agents, findings, outcomes and runs that no machine has: what the core is tested with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.merger import merge
from gapline.orchestrator.model.agent import Agent, AnyAgent, Code, Facts, Layer, PairAgent, Scope
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import NotApplicableError, ParseError
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity, fingerprint
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, Passed, Status, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import Header, OutcomeEntry, ReportedFinding, Run, TargetEntry, TargetKind, Times
from gapline.orchestrator.model.source import File, Source, Vantage
from gapline.orchestrator.plan import Plan

STARTED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
TIMES = Times(planned=0.0, collected=0.5, judged=0.6)
DENIED = Problem(kind=ProblemKind.DENIED, detail="only root may look", hint="become: sudo")
STOPPED = Problem(kind=ProblemKind.NOT_RUNNING, detail="container 7 is not running")


class Level(Fact):
    """What a gauge of the host shows, in percent."""

    percent: int


class Gate(Fact):
    """Whether the container's gate is open."""

    open: bool


def finding(
    code: str = "level.low",
    severity: Severity = Severity.HIGH,
    subject: str = "gauge",
    effect: Effect = Effect.BREAKS,
    confidence: Confidence = Confidence.VERIFIED,
) -> Finding:
    """A finding with everything it must have."""
    return Finding(
        code=code,
        subject=subject,
        severity=severity,
        title=f"{code} on {subject}",
        observed="3 %",
        expected="at least 10 %",
        effect=effect,
        confidence=confidence,
        evidence=(),
        remedy=Remedy(
            now="fill", lasting="keep filling", undo="drain", cost="none", risk=Risk.R1, restarts="nothing",
            verify_agent="host.level",
        ),
        origin="a document" if effect is Effect.DOCUMENTED else "",
        settled_by="a benchmark" if effect is Effect.PLAUSIBLE else "",
    )  # fmt: skip


def parse_level(captures: Captures) -> Level:
    """A number; `none` means that there is no gauge."""
    line = captures.need("level").first()
    if line.text == "none":
        raise NotApplicableError("there is no gauge")
    if not line.text.isascii() or not line.text.isdecimal():
        raise ParseError(line.evidence, "a number")
    return Level(percent=int(line.text))


def judge_level(fact: Level, limits: Limits) -> Outcome:
    """Below the limit it is found."""
    least = limits.number("least") if "least" in limits else 10
    return judged(fact, (finding(),) if fact.percent < least else ())


def parse_gate(captures: Captures) -> Gate:
    """Open or shut."""
    return Gate(open=captures.need("gate").first().text == "open")


LEVEL_FILE = File("/proc/gauge")
GATE_FILE = File("/proc/{init}/gate", root=True)
INSIDE_FILE = File("/etc/gate", vantage=Vantage.INSIDE)


def level_agent(id_: str = "host.level", **changes: Any) -> Agent[Level]:
    """An agent of the host."""
    parts: dict[str, Any] = {
        "id": id_, "title": "Level", "layer": Layer.SYSTEM, "scope": Scope.HOST, "fact": Level,
        "sources": {"level": LEVEL_FILE}, "parse": parse_level, "judge": judge_level,
        "codes": (Code(code="level.low", title="low", meaning="it is low"),),
    }  # fmt: skip
    return Agent(**parts | changes)


def gate_agent(**changes: Any) -> Agent[Gate]:
    """An agent of containers, that looks from both sides."""
    sources: dict[str, Source] = {"inside": INSIDE_FILE, "gate": GATE_FILE}
    parts: dict[str, Any] = {
        "id": "container.gate", "title": "Gate", "layer": Layer.CONTAINER, "scope": Scope.CONTAINER, "fact": Gate,
        "sources": sources, "parse": parse_gate, "judge": lambda fact, _: Passed(fact), "codes": (),
    }  # fmt: skip
    return Agent(**parts | changes)


def judge_pair(facts: Facts, _: Limits) -> Outcome:
    """Found where the gate is shut although the level is fine."""
    shut = not facts.of(Gate).open and facts.of(Level).percent > 0
    return judged(facts.of(Gate), (finding("pair.shut", subject="gate"),) if shut else ())


def pair_agent(**changes: Any) -> PairAgent:
    """An agent that sets the two against each other."""
    parts: dict[str, Any] = {
        "id": "pair.gate", "title": "Pair", "layer": Layer.CONTAINER, "needs": (Level, Gate), "judge": judge_pair,
        "codes": (),
    }  # fmt: skip
    return PairAgent(**parts | changes)


EVERYONE: tuple[AnyAgent, ...] = (level_agent(), gate_agent(), pair_agent())


def plan(*hosts: Host, agents: tuple[AnyAgent, ...] = EVERYONE, limits: dict[str, Limits] | None = None) -> Plan:
    """A plan for these hosts."""
    return Plan(playbook="full", fail_on=Severity.HIGH, hosts=hosts, agents=agents, limits=limits or {})


def capture(source: Source, text: str = "", problem: Problem | None = None, target: str = "pve1") -> Capture:
    """What came back for a source."""
    return Capture(target, source.key, source.key, text.encode(), problem=problem)


def entry(
    status: Status = Status.PASSED,
    *findings: Finding,
    target: str = "pve1",
    agent: str = "host.level",
    layer: int = 2,
    problem: Problem | None = None,
    unseen: tuple[Problem, ...] = (),
    snapshot: int | None = 0,
    reason: str = "said so",
) -> OutcomeEntry:
    """An outcome as it is written."""
    return OutcomeEntry(
        target=target, agent=agent, title=agent, layer=layer, status=status, reason=reason, problem=problem,
        unseen=unseen, times=TIMES, snapshot=snapshot, age=0, fact=None,
        findings=tuple(reported(one, target) for one in findings),
    )  # fmt: skip


def found(*findings: Finding, **changes: Any) -> OutcomeEntry:
    """An outcome with findings."""
    return entry(Status.FOUND, *findings or (finding(),), **changes)


def unknown(problem: Problem = DENIED, **changes: Any) -> OutcomeEntry:
    """An outcome without an answer."""
    return entry(Status.UNKNOWN, problem=problem, **changes)


def reported(one: Finding, target: str = "pve1", *, waived: bool = False) -> ReportedFinding:
    """A finding in a run."""
    parts = {name: getattr(one, name) for name in Finding.model_fields}
    return ReportedFinding(**parts, fingerprint=fingerprint(target, one.code, one.subject), waived=waived)


def target(id_: str = "pve1", problem: Problem | None = None, *, audited: bool = True) -> TargetEntry:
    """A target of a run; with a slash in its id a container."""
    parent, slash, name = id_.partition("/")
    return TargetEntry(
        id=id_, kind=TargetKind.LXC_CONTAINER if slash else TargetKind.PROXMOX_HOST, parent=parent if slash else None,
        route="ssh", name=name or id_, boot_id=None, uptime_seconds=None, privilege="root", load=None,
        clock_skew_seconds=None, audited=audited, reason="asked for", problem=problem,
    )  # fmt: skip


def run(
    *outcomes: OutcomeEntry, targets: tuple[TargetEntry, ...] = (), snapshots: tuple[str, ...] = ("snapshot-1",)
) -> Run:
    """A run of these outcomes."""
    header = Header(
        id="r1", started=STARTED, finished=STARTED, gapline="0", playbook="full", fail_on="high", synthetic=False,
        snapshots=snapshots,
    )  # fmt: skip
    return merge(header, targets or (target(),), outcomes)
