"""Lists of CPUs or nodes as Linux writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.errors import ParseError


def members(line: Line) -> tuple[int, ...]:
    """``0-2,64`` as 0, 1, 2, 64; an empty line is an empty list. Linux writes them rising, so none comes twice.

    Raises:
        ParseError: another form, or numbers beyond what Linux can have.
    """
    text = line.text.strip()
    if _LIST.fullmatch(text) is None:
        raise ParseError(line.evidence, "a list such as 0-63,128-191")
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        start, end = int(first), int(last or first)
        if not (found[-1] if found else -1) < start <= end < _MOST:
            raise ParseError(line.evidence, "numbers that rise, below 8192")
        found.extend(range(start, end + 1))
    return tuple(found)


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as Linux writes them: 0-63,128-191."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


_MOST = 8192  # CONFIG_NR_CPUS with MAXSMP (Linux arch/x86/Kconfig)
_LIST = re.compile(r"(?:[0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?)*)?", re.ASCII)
