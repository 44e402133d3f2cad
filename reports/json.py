"""`run.json`: the canonical text of a run.

One line per target and per outcome, so that two runs can be compared with `diff`, one record found with `grep`, and
a fleet written without holding its text in memory. The text is ASCII: whatever a target said, printing the file on a
terminal does nothing but print it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Any

from pydantic import BaseModel

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import Header, OutcomeEntry, ReportedFinding, Run, Summary


def text(run: Run) -> str:
    """The whole document, the same for equal runs, with a line feed at its end."""
    return "".join(stream(run))


def stream(run: Run) -> Iterator[str]:
    """The same in pieces, to be written one after the other."""
    yield f'{{\n"schema": {_line(run.schema_)},\n"run": {_line(_record(_utc(run.run)))},\n'
    yield from _array("targets", map(_record, run.targets))
    yield from _array("outcomes", (_record(_ordered(entry)) for entry in _outcomes(run)))
    yield from _array("layers", map(_record, sorted(run.layers, key=lambda entry: entry.layer)))
    rest = _record(run.model_copy(update={"targets": (), "outcomes": ()}))
    yield f'"ceiling": {_line(rest["ceiling"])},\n"waterfall": {_line(rest["waterfall"])},\n'
    yield f'"summary": {_line(_record(_counted(run.summary)))}\n}}\n'


def _array(name: str, records: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield f'"{name}": ['
    separator = "\n"
    for record in records:
        yield separator + _line(record)
        separator = ",\n"
    yield "\n],\n"


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def _record(part: BaseModel) -> dict[str, Any]:
    """As it is written. Not-a-number becomes null: JSON has no other word for it."""
    try:
        return part.model_dump(mode="json")
    except UnicodeEncodeError:
        return type(part).model_validate(_encodable(part.model_dump())).model_dump(mode="json")


def _encodable(value: object) -> object:
    """The same with half surrogates as visible text: file names can hold them, JSON readers refuse them."""
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {_encodable(key): _encodable(one) for key, one in value.items()}
        case tuple() | list():
            return tuple(_encodable(one) for one in value)
        case _:
            return value


def _utc(header: Header) -> Header:
    times = {"started": header.started.astimezone(UTC), "finished": header.finished.astimezone(UTC)}
    return header.model_copy(update=times)


def _outcomes(run: Run) -> list[OutcomeEntry]:
    """In the order of the targets, then of the layers; agents finish in any order."""
    place = {target.id: index for index, target in enumerate(run.targets)}
    return sorted(run.outcomes, key=lambda entry: (place.get(entry.target, len(place)), entry.layer, entry.agent))


def _ordered(entry: OutcomeEntry) -> OutcomeEntry:
    def order(finding: ReportedFinding) -> tuple[int, str, str]:
        return finding.severity.rank, finding.code, finding.subject

    return entry.model_copy(update={"findings": tuple(sorted(entry.findings, key=order))})


def _counted(summary: Summary) -> Summary:
    """Counts in the order of severity and status, zeros kept; names this version does not know follow."""
    return summary.model_copy(
        update={
            "findings": _in_order(summary.findings, tuple(Severity)),
            "statuses": _in_order(summary.statuses, tuple(Status)),
        }
    )


def _in_order(counts: dict[str, int], names: tuple[str, ...]) -> dict[str, int]:
    known = [name for name in names if name in counts]
    return {str(name): counts[name] for name in (*known, *sorted(counts.keys() - set(names)))}
