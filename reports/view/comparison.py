"""A host and its containers side by side, and what they disagree about, with the raw lines of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.run import OutcomeEntry, Run, TargetEntry
from gapline.reports.view.allowance import Allowance
from gapline.reports.view.anchor import Anchors
from gapline.reports.view.evidence import Excerpt, excerpts, no_context
from gapline.reports.view.fact import Row, key_values
from gapline.reports.view.finding import Found
from gapline.reports.view.words import LAYERS, STATUSES, tone
from gapline.reports.visible import clipped

_REASON = 120
_VALUES = 4
FEW_TARGETS = 12


@dataclass(frozen=True, slots=True)
class Cell:
    """One agent's answer about one machine."""

    label: str
    tone: str
    reason: str
    values: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One concern; the first cell is the host's. None: the concern does not exist there."""

    title: str
    agents: tuple[str, ...]
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Area:
    """The concerns of one layer."""

    name: str
    rows: tuple[ComparisonRow, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One finding that rests on lines of both machines."""

    anchor: str
    title: str
    severity: Severity
    waived: bool
    host: str
    container: str
    host_says: tuple[Excerpt, ...]
    container_says: tuple[Excerpt, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A machine of the comparison."""

    target: str
    name: str
    anchor: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A host with its audited containers."""

    columns: tuple[Column, ...]
    areas: tuple[Area, ...]
    disagreements: tuple[Disagreement, ...]


def comparisons(run: Run, findings: tuple[Found, ...], anchors: Anchors) -> Iterator[Comparison]:
    """One for each host that has audited containers."""
    by_target: dict[str, list[OutcomeEntry]] = {}
    for entry in run.outcomes:
        by_target.setdefault(entry.target, []).append(entry)
    children: dict[str, list[TargetEntry]] = {}
    for target in run.targets:
        if target.parent is not None and target.audited:
            children.setdefault(target.parent, []).append(target)
    values = _VALUES if len(run.targets) <= FEW_TARGETS else 0
    disagreements = _disagreements(run, findings, anchors)
    for host in run.targets:
        machines = (host, *children.get(host.id, ()))
        if len(machines) > 1:
            yield Comparison(
                columns=tuple(Column(one.id, one.name, anchors.of_target(one.id)) for one in machines),
                areas=_areas(tuple(one.id for one in machines), by_target, values),
                disagreements=tuple(disagreements.get(host.id, ())),
            )


def _areas(targets: tuple[str, ...], by_target: Mapping[str, list[OutcomeEntry]], values: int) -> tuple[Area, ...]:
    """By layer; agents of one concept (`host.driver`, `container.driver`) share a row."""
    table: dict[tuple[int, str], dict[str, OutcomeEntry]] = {}
    for target in targets:
        for entry in by_target.get(target, ()):
            concept = entry.agent.split(".", 1)[-1]
            table.setdefault((entry.layer, concept), {})[target] = entry
    areas: dict[str, list[ComparisonRow]] = {}
    for (layer, _), entries in sorted(table.items(), key=lambda item: item[0]):
        cells = tuple(_cell(entries[target], values) if target in entries else None for target in targets)
        titles = dict.fromkeys(entry.title for entry in entries.values())
        agents = tuple(dict.fromkeys(entry.agent for entry in entries.values()))
        areas.setdefault(LAYERS[layer], []).append(ComparisonRow(" / ".join(titles), agents, cells))
    return tuple(Area(name, tuple(rows)) for name, rows in areas.items())


def _cell(entry: OutcomeEntry, values: int) -> Cell:
    shown = key_values(entry.fact, values) if values and entry.fact else ()
    return Cell(STATUSES[entry.status], tone(entry), clipped(entry.reason, _REASON), shown)


def _disagreements(run: Run, findings: tuple[Found, ...], anchors: Anchors) -> dict[str, list[Disagreement]]:
    """By host. A finding is a disagreement when it cites the container and its host."""
    parents = {target.id: target.parent for target in run.targets}
    nothing = Allowance(1, 0)
    by_host: dict[str, list[Disagreement]] = {}
    for one in findings:
        host = parents.get(one.target)
        cited = {line.target for line in one.finding.evidence}
        if host is None or not {host, one.target} <= cited:
            continue
        said = excerpts(one.finding.evidence, no_context, nothing)
        by_host.setdefault(host, []).append(
            Disagreement(
                anchor=anchors.of_finding(one.finding),
                title=clipped(one.finding.title, _REASON),
                severity=one.finding.severity,
                waived=one.finding.waived,
                host=host,
                container=one.target,
                host_says=tuple(excerpt for excerpt in said if excerpt.target == host),
                container_says=tuple(excerpt for excerpt in said if excerpt.target == one.target),
            )
        )
    return by_host
