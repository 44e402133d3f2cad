"""What /proc/PID/status tells of a container's init: capabilities, seccomp, CPUs and memory nodes it may use."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.source import File, Vantage

STATUS = File("/proc/{init}/status")
"""Of the init as the host's /proc shows it. Everybody may read it."""

STATUS_INSIDE = File("/proc/1/status", vantage=Vantage.INSIDE)
"""Of the same process as the container's own /proc shows it."""

_ROW = re.compile(r"([A-Za-z_]{1,30}):[ \t]*(.*)")


def rows(capture: Capture) -> Mapping[str, Line]:
    """The rows by their names; the text of each is the whole row, as evidence wants it.

    Raises:
        ParseError: a line that is no row (fs/proc/array.c).
    """
    found: dict[str, Line] = {}
    for line in capture.lines():
        match = _ROW.fullmatch(line.text)
        if match is None:
            raise ParseError(line.evidence, "NAME: value")
        found.setdefault(match[1], line)
    if not found:
        raise ParseError(capture.first().evidence, "the rows of /proc/PID/status")
    return found


def value(line: Line) -> str:
    """What stands after the name."""
    return line.text.partition(":")[2].strip()


def number(line: Line) -> int:
    """A decimal value.

    Raises:
        ParseError: it is none.
    """
    text = value(line)
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise ParseError(line.evidence, "a number")
    return int(text)


def mask(line: Line) -> int:
    """A bit mask in hexadecimal digits.

    Raises:
        ParseError: it is none.
    """
    text = value(line)
    if not re.fullmatch(r"[0-9a-f]{1,16}", text):
        raise ParseError(line.evidence, "up to 16 hexadecimal digits")
    return int(text, 16)


def need(found: Mapping[str, Line], name: str, capture: Capture) -> Line:
    """The row of that name.

    Raises:
        ParseError: there is none.
    """
    if name not in found:
        raise ParseError(capture.first().evidence, f"a row {name}")
    return found[name]
