"""One bar, divided in proportion to counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WIDTH = 1000


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar `WIDTH` units wide."""

    name: str
    count: int
    start: int
    width: int


def bar(counts: Mapping[str, int]) -> tuple[Segment, ...]:
    """The segments in the order of the counts; what counts nothing has no segment."""
    total = sum(counts.values())
    segments: list[Segment] = []
    before = 0
    for name, count in counts.items():
        start, before = round(before * WIDTH / total) if total else 0, before + count
        if count:
            segments.append(Segment(name, count, start, round(before * WIDTH / total) - start))
    return tuple(segments)
