"""An agent's fact as rows a person can read: names with their values, and equal records as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import inf
from typing import Any

from gapline.reports.view.allowance import size
from gapline.reports.visible import clipped

_WIDTH = 400  # characters of one value
_ROWS = 300
_RECORDS = 64
_COLUMNS = 8
_VALUE_MARKUP = 40  # bytes around each text of a fact


@dataclass(frozen=True, slots=True)
class Row:
    """One value by its dotted name."""

    name: str
    value: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything it shows."""
        return self.name, self.value


@dataclass(frozen=True, slots=True)
class Table:
    """Records of one form."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int  # records left out

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything it shows."""
        return (*self.columns, *chain.from_iterable(self.rows))


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact: single values first, then its tables."""

    rows: tuple[Row, ...]
    tables: tuple[Table, ...]
    more: int  # rows left out

    @property
    def size(self) -> int:
        """Bytes that it takes in a page."""
        parts: tuple[Row | Table, ...] = (*self.rows, *self.tables)
        texts = tuple(chain.from_iterable(part.texts for part in parts))
        return size(texts) + _VALUE_MARKUP * len(texts)


def fact_view(fact: Mapping[str, Any], room: float = inf) -> FactView | None:
    """The whole fact, long ones cut; None as soon as it is sure to take more bytes of a page than there is room for."""
    rows: list[Row] = []
    tables: list[Table] = []
    more = 0
    for part in _flat("", fact):
        if isinstance(part, Table):
            tables.append(part)
        elif len(rows) < _ROWS:
            rows.append(part)
        else:
            more += 1
            continue
        room -= sum(map(len, part.texts)) + _VALUE_MARKUP * len(part.texts)
        if room < 0:
            return None
    return FactView(tuple(rows), tuple(tables), more)


def key_values(fact: Mapping[str, Any], at_most: int) -> tuple[Row, ...]:
    """The first single values of a fact's own level."""
    flat = (Row(name, value_text(value)) for name, value in fact.items() if not isinstance(value, (dict, list, tuple)))
    return tuple(islice(flat, at_most))


def value_text(value: object) -> str:
    """A value in words: unknown, yes and no instead of None, True and False."""
    if isinstance(value, str):  # first: nearly all of them
        return clipped(value, _WIDTH)
    if value is None:
        return "unknown"
    if isinstance(value, (list, tuple, dict)):
        return clipped(_inline(value), _WIDTH) if value else "none"
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case _:
            return clipped(str(value), _WIDTH)


def _flat(name: str, value: object) -> Iterator[Row | Table]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            dotted = f"{name}.{key}" if name else str(key)
            if isinstance(inner, str):  # most are, and need nothing of what follows
                yield Row(dotted, value_text(inner))
            else:
                yield from _flat(dotted, inner)
    elif isinstance(value, (list, tuple)) and set(map(type, value)) == {dict}:
        yield from _records(name, value)
    else:
        yield Row(name, value_text(value))


def _records(name: str, records: Sequence[Mapping[str, Any]]) -> Iterator[Row | Table]:
    columns = tuple(dict.fromkeys(chain.from_iterable(records)))
    if len(columns) > _COLUMNS:
        for index, record in enumerate(records[:_RECORDS]):
            yield from _flat(f"{name}[{index}]", record)
    else:
        rows = tuple(_cells(record, columns) for record in records[:_RECORDS])
        yield Table(name, columns, rows, max(len(records) - _RECORDS, 0))


def _cells(record: Mapping[str, Any], columns: Iterable[str]) -> tuple[str, ...]:
    return tuple(value_text(record[column]) if column in record else "" for column in columns)


def _inline(value: object) -> str:
    if isinstance(value, str):
        return clipped(value, _WIDTH)
    if isinstance(value, dict):
        return ", ".join(f"{key} {_inline(inner)}" for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_inline(inner) for inner in value)
    return value_text(value)
