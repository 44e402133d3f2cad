"""Findings in the order in which to read them, equal ones of several targets on one card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from gapline.orchestrator.model.finding import Effect, Remedy, Severity
from gapline.orchestrator.model.run import OutcomeEntry, ReportedFinding, Run
from gapline.reports.diff import DiffLine, diff_lines
from gapline.reports.prose import Piece, prose
from gapline.reports.view.allowance import Allowance, size
from gapline.reports.view.anchor import Anchors
from gapline.reports.view.evidence import Context, Excerpt, excerpts
from gapline.reports.view.words import CONFIDENCES, EFFECTS, LAYERS, RISKS, counted, listed
from gapline.reports.visible import clipped

LISTED_PER_TARGET = 60
_WIDTH = 2_000  # characters of one text of a finding
_SUBJECT_WIDTH = 200
_CARD_MARKUP = 2_500  # bytes
_LINE_MARKUP = 80


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with the outcome it belongs to."""

    entry: OutcomeEntry
    finding: ReportedFinding
    place: int  # in the summary's list of first things; its length when it is not there

    @property
    def target(self) -> str:
        """Where it was found."""
        return self.entry.target

    @property
    def order(self) -> tuple[bool, int, int, int, str, str, str]:
        """Waived last, then what is to be fixed first, then by severity and by how well the harm is known."""
        finding = self.finding
        effect = list(Effect).index(finding.effect)
        rank = finding.severity.rank
        return finding.waived, self.place, rank, effect, self.target, finding.code, finding.subject


@dataclass(frozen=True, slots=True)
class Cost:
    """What a finding costs, and how that is known."""

    label: str
    origin: str  # of a documented effect
    settled_by: tuple[Piece, ...]  # of a plausible one
    effect: Effect


@dataclass(frozen=True, slots=True)
class RemedyView:
    """What to do."""

    now: tuple[Piece, ...]
    lasting: tuple[Piece, ...]
    undo: tuple[Piece, ...]
    cost: tuple[Piece, ...]
    risk: str
    risk_label: str
    restarts: str


@dataclass(frozen=True, slots=True)
class Instance:
    """Where a card's finding was found."""

    anchor: str
    target: str
    subject: str
    observed: str
    excerpts: tuple[Excerpt, ...]
    diff: tuple[DiffLine, ...]
    verify: str


@dataclass(frozen=True, slots=True)
class Card:
    """One finding, or equal findings that one remedy text answers."""

    code: str
    title: str
    severity: Severity
    base_severity: Severity | None  # only where the context changed it
    severity_reason: str
    layer: str
    agent: str
    expected: str
    cost: Cost
    confidence: str
    remedy: RemedyView
    waived: bool
    where: str
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class Short:
    """A finding that the page has no room for; it is in `run.json` in full."""

    anchor: str
    code: str
    severity: Severity
    target: str
    subject: str


@dataclass(frozen=True, slots=True)
class Shown:
    """How a run's findings share the page."""

    full: tuple[Found, ...]
    short: tuple[Found, ...]
    unlisted: int


def found(run: Run) -> tuple[Found, ...]:
    """All findings of a run in reading order."""
    place = {fingerprint: index for index, fingerprint in enumerate(run.summary.first)}
    pairs = ((entry, finding) for entry in run.outcomes for finding in entry.findings)
    every = (Found(entry, finding, place.get(finding.fingerprint, len(place))) for entry, finding in pairs)
    return tuple(sorted(every, key=lambda one: one.order))


def shown(findings: tuple[Found, ...], allowance: Allowance) -> Shown:
    """Which findings a page shows: a target with thousands of them drowns neither the page nor the other targets.

    Once a finding of a target does not fit, no later one is shown in full: what is worse is never shown with less.
    """
    full: list[Found] = []
    short: list[Found] = []
    listed_on: Counter[str] = Counter()
    for one in findings:
        if not listed_on[one.target] and allowance.take(one.target, _size(one.finding)):
            full.append(one)
        elif listed_on[one.target] < LISTED_PER_TARGET:
            listed_on[one.target] += 1
            short.append(one)
    return Shown(tuple(full), tuple(short), len(findings) - len(full) - len(short))


def shorts(findings: tuple[Found, ...], anchors: Anchors) -> tuple[Short, ...]:
    """The lines of the findings that the page has no room for."""
    return tuple(
        Short(
            anchor=anchors.of_finding(one.finding),
            code=one.finding.code,
            severity=one.finding.severity,
            target=one.target,
            subject=clipped(one.finding.subject, _SUBJECT_WIDTH),
        )
        for one in findings
    )


def cards(findings: tuple[Found, ...], anchors: Anchors, context: Context, allowance: Allowance) -> Iterator[Card]:
    """One card after the other, worst first."""
    groups: dict[object, list[Found]] = {}
    for one in findings:
        groups.setdefault(_same(one.finding), []).append(one)
    for group in groups.values():
        instances = tuple(_instance(one, anchors, context, allowance) for one in group)
        yield _card(group[0], instances)


def cost(finding: ReportedFinding, width: int = _WIDTH) -> Cost:
    """What it costs, in the words of its effect."""
    origin, settled_by = clipped(finding.origin, width), prose(clipped(finding.settled_by, width))
    return Cost(EFFECTS[finding.effect], origin, settled_by, finding.effect)


def verify_command(finding: ReportedFinding, target: str) -> str:
    """The command that shows whether a remedy worked."""
    return f"gapline rerun {quote(finding.remedy.verify_agent)} --target {quote(target)}"


def _same(finding: ReportedFinding) -> object:
    """Equal for findings that differ in nothing but where they are."""
    apart = {"subject", "observed", "evidence", "fingerprint", "remedy"}
    return repr(finding.model_dump(exclude=apart)), finding.remedy.model_copy(update={"diff": ""})


def _card(one: Found, instances: tuple[Instance, ...]) -> Card:
    finding = one.finding
    return Card(
        code=finding.code,
        title=clipped(finding.title, _WIDTH),
        severity=finding.severity,
        base_severity=None if finding.base_severity is finding.severity else finding.base_severity,
        severity_reason=clipped(finding.severity_reason, _WIDTH),
        layer=LAYERS[one.entry.layer],
        agent=one.entry.agent,
        expected=clipped(finding.expected, _WIDTH),
        cost=cost(finding),
        confidence=CONFIDENCES[finding.confidence],
        remedy=_remedy(finding.remedy),
        waived=finding.waived,
        where=_where(instances),
        instances=instances,
    )


def _where(instances: tuple[Instance, ...]) -> str:
    """`pve1 · nvidia-uvm`, `pve1 · policy0, policy1 and 126 more`, `12 targets: pve1, pve2 and 10 more`."""
    targets = tuple(dict.fromkeys(instance.target for instance in instances))
    if len(targets) > 1:
        return f"{counted(len(targets), 'target')}: {listed(targets)}"
    return f"{targets[0]} · {listed(tuple(instance.subject for instance in instances))}"


def _remedy(remedy: Remedy) -> RemedyView:
    return RemedyView(
        now=prose(clipped(remedy.now, _WIDTH)),
        lasting=prose(clipped(remedy.lasting, _WIDTH)),
        undo=prose(clipped(remedy.undo, _WIDTH)),
        cost=prose(clipped(remedy.cost, _WIDTH)),
        risk=remedy.risk,
        risk_label=RISKS[remedy.risk],
        restarts=clipped(remedy.restarts, _WIDTH),
    )


def _instance(one: Found, anchors: Anchors, context: Context, allowance: Allowance) -> Instance:
    finding = one.finding
    return Instance(
        anchor=anchors.of_finding(finding),
        target=one.target,
        subject=clipped(finding.subject, _SUBJECT_WIDTH),
        observed=clipped(finding.observed, _WIDTH),
        excerpts=excerpts(finding.evidence, context, allowance),
        diff=diff_lines(finding.remedy.diff),
        verify=verify_command(finding, one.target),
    )


def _size(finding: ReportedFinding) -> int:
    """What a finding takes in the page, with the markup of its card and its lines.

    Evidence counts twice: where host and container disagree, it stands in the comparison too.
    """
    remedy = finding.remedy
    texts = [finding.title, finding.observed, finding.expected, finding.severity_reason, finding.origin]
    texts += [finding.settled_by, remedy.now, remedy.lasting, remedy.undo, remedy.cost, remedy.restarts]
    lines = [line.source + line.text for line in finding.evidence] * 2 + remedy.diff.split("\n")
    return _CARD_MARKUP + size(clipped(text, _WIDTH) for text in texts) + size(lines) + _LINE_MARKUP * len(lines)
