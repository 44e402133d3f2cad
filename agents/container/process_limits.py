"""Resource limits of a process: the table of `/proc/PID/limits`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact

_DIGITS = 20  # of the largest 64-bit number
_HEADINGS = ("Limit", "Soft Limit", "Hard Limit", "Units")


class ProcessLimit(Fact):
    """One limit in its own unit; None is unlimited."""

    name: str  # as the kernel names it: "Max locked memory"
    soft: int | None
    hard: int | None
    evidence: Evidence


def process_limits(lines: Sequence[Line]) -> tuple[ProcessLimit, ...]:
    """All rows. Columns are cut where the heading has them, because the names contain blanks (fs/proc/base.c).

    Raises:
        ParseError: the heading or a row has another form.
    """
    if not lines:
        return ()
    heading, rows = lines[0], lines[1:]
    starts = [heading.text.find(name) for name in _HEADINGS]
    if starts[0] != 0 or -1 in starts or starts != sorted(starts):
        raise ParseError(heading.evidence, "the heading of /proc/PID/limits")
    return tuple(_row(row, starts) for row in rows)


def _row(line: Line, starts: list[int]) -> ProcessLimit:
    name, soft, hard = (line.text[a:b].strip() for a, b in pairwise(starts))
    if not name:
        raise ParseError(line.evidence, "the name of a limit")
    return ProcessLimit(name=name, soft=_value(soft, line), hard=_value(hard, line), evidence=line.evidence)


def _value(text: str, line: Line) -> int | None:
    if text == "unlimited":
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise ParseError(line.evidence, "a number or 'unlimited'")
    return int(text)
