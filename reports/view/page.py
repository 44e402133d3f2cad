"""Everything a report shows, in the order in which it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from gapline.orchestrator.model.run import Run
from gapline.reports.svg.concurrency import Concurrency, concurrency
from gapline.reports.svg.timeline import Axis, Strip, axis, strips
from gapline.reports.view.allowance import FLEET_EVIDENCE, FLEET_FACTS, Allowance
from gapline.reports.view.anchor import Anchors
from gapline.reports.view.answer import Answer, answer
from gapline.reports.view.comparison import FEW_TARGETS, Comparison, comparisons
from gapline.reports.view.evidence import Context
from gapline.reports.view.finding import Card, Short, cards, found, shorts, shown
from gapline.reports.view.fleet import Overview, Shared, overview, shared
from gapline.reports.view.target import Sections, TargetView
from gapline.reports.view.unknown import Unseen, unseen


@dataclass(frozen=True, slots=True)
class About:
    """The run's own data."""

    id: str
    started: str
    finished: str
    seconds: float
    gapline: str
    playbook: str
    fail_on: str
    exit_code: int
    synthetic: bool
    snapshots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A report. The last three are iterators, made as they are written: a fleet's page is never held in memory."""

    about: About
    answer: Answer
    few: bool  # few enough targets to have everything open
    overview: tuple[Overview, ...]
    shared: tuple[Shared, ...]
    findings: int
    waived: int
    short: tuple[Short, ...]  # findings of overflowing targets, in `run.json` in full
    unlisted: int  # … and those that are only there
    compared: int
    unseen: tuple[Unseen, ...]
    sections: int
    axis: Axis
    concurrency: Concurrency
    timeline: tuple[tuple[str, tuple[Strip, ...]], ...]  # target and strips, of few targets
    cards: Iterator[Card]
    comparisons: Iterator[Comparison]
    targets: Iterator[TargetView]


def page(run: Run, context: Context) -> Page:
    """The page of a run. Reads `context` while its cards are iterated."""
    anchors, along, count = Anchors(run), axis(run.outcomes), len(run.targets)
    every = found(run)
    allowance = Allowance(count, FLEET_EVIDENCE)
    kept = shown(every, allowance)
    few = count <= FEW_TARGETS
    return Page(
        about=about(run),
        answer=answer(run, every, anchors),
        few=few,
        overview=overview(run, anchors),
        shared=shared(every, anchors),
        findings=len(every),
        waived=sum(one.finding.waived for one in every),
        short=shorts(kept.short, anchors),
        unlisted=kept.unlisted,
        compared=len({target.parent for target in run.targets if target.parent is not None and target.audited}),
        unseen=unseen(run, anchors),
        sections=sum(target.audited or target.problem is not None for target in run.targets),
        axis=along,
        concurrency=concurrency(run.outcomes, along),
        timeline=tuple(_timeline(run, along)) if few else (),
        cards=cards(kept.full, anchors, context, allowance),
        comparisons=comparisons(run, kept.full, anchors),
        targets=iter(Sections(run, anchors, None if few else along, Allowance(count, FLEET_FACTS))),
    )


def _timeline(run: Run, along: Axis) -> Iterator[tuple[str, tuple[Strip, ...]]]:
    for target in run.targets:
        entries = [entry for entry in run.outcomes if entry.target == target.id and entry.age == 0]
        if entries:
            yield target.id, strips(entries, along)


def about(run: Run) -> About:
    """The run's own data in words."""
    header = run.run
    return About(
        id=header.id,
        started=_utc(header.started),
        finished=_utc(header.finished),
        seconds=(header.finished - header.started).total_seconds(),
        gapline=header.gapline,
        playbook=header.playbook,
        fail_on=header.fail_on,
        exit_code=run.summary.exit_code,
        synthetic=header.synthetic,
        snapshots=header.snapshots,
    )


def _utc(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
