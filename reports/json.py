"""`run.json`: the canonical text of a run.

One line per target and per outcome, so that two runs can be compared with `diff`, one record found with `grep`, and
a fleet written without holding its text in memory. The text is ASCII: whatever a target said, printing the file on a
terminal does nothing but print it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import Header, OutcomeEntry, ReportedFinding, Run, Summary


def text(run: Run) -> str:
    """The whole document, the same for equal runs, with a line feed at its end."""
    return "".join(stream(run))


def stream(run: Run) -> Iterator[str]:
    """The same in pieces, to be written one after the other."""
    yield f'{{\n"schema": "{run.schema_}",\n"run": {_line(_utc(run.run))},\n'
    yield from _array("targets", map(_line, run.targets))
    yield from _array("outcomes", map(_outcome, _outcomes(run)))
    yield from _array("layers", map(_line, sorted(run.layers, key=lambda entry: entry.layer)))
    yield f'"ceiling": {_value(run.ceiling)},\n"waterfall": {_value(run.waterfall)},\n'
    yield f'"summary": {_line(_counted(run.summary))}\n}}\n'


def _array(name: str, lines: Iterable[str]) -> Iterator[str]:
    yield f'"{name}": ['
    separator = "\n"
    for line in lines:
        yield separator + line
        separator = ",\n"
    yield "\n],\n"


def _outcome(entry: OutcomeEntry) -> str:
    """The outcome with its fact, which is written already. No text before it can hold its name in plain quotes."""
    line = _line(entry.model_copy(update={"findings": tuple(sorted(entry.findings, key=_order)), "fact": None}))
    return line if entry.fact is None else line.replace(_NO_FACT, f'"fact":{_printable(entry.fact.json)}', 1)


_NO_FACT = '"fact":null'


def _line(part: BaseModel) -> str:
    """As it is written. Not-a-number becomes null: JSON has no other word for it."""
    try:
        return _printable(part.model_dump_json(ensure_ascii=True).encode())
    except PydanticSerializationError:
        encodable = type(part).model_validate(_encodable(part.model_dump()))
        return _printable(encodable.model_dump_json(ensure_ascii=True).encode())


def _value(value: object) -> str:
    return _printable(to_json(_encodable(value), ensure_ascii=True, inf_nan_mode="null"))


def _printable(line: bytes) -> str:
    """The serializer leaves one character of ASCII as it is that prints nothing."""
    return line.replace(b"\x7f", b"\\u007f").decode("ascii")


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


def _order(finding: ReportedFinding) -> tuple[int, str, str]:
    return finding.severity.rank, finding.code, finding.subject


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
