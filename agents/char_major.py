"""The kernel's table of character device majors, `/proc/devices`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class CharMajor(Fact):
    """One registered region: the name of its driver and the major it got."""

    number: int
    name: str
    evidence: Evidence


def char_majors(capture: Capture) -> tuple[CharMajor, ...]:
    """The character section of `/proc/devices`, in its order.

    A major appears once per region, so 195 can stand there three times under three names; the block section has
    majors of its own and is left out (Linux fs/char_dev.c and block/genhd.c write the two).

    Raises:
        ParseError: the headings or a line in between are not of that form.
    """
    return tuple(_section(capture))


def _section(capture: Capture) -> Iterator[CharMajor]:
    lines = capture.lines()
    heading = next(lines, capture.first())
    if heading.text != "Character devices:":
        raise ParseError(heading.evidence, "the heading 'Character devices:'")
    for line in lines:
        if line.text in {"", "Block devices:"}:
            return
        match = _LINE.fullmatch(line.text)
        if match is None:
            raise ParseError(line.evidence, "a major and the name of its driver")
        yield CharMajor(number=int(match[1]), name=match[2], evidence=line.evidence)


_LINE = re.compile(r" *([0-9]{1,10}) (\S.*)", re.ASCII)
