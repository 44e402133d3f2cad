"""How many agents were under way at the same time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from gapline.orchestrator.model.run import OutcomeEntry
from gapline.reports.svg.timeline import WIDTH, Axis

HEIGHT = 100
_BINS = 250


@dataclass(frozen=True, slots=True)
class Concurrency:
    """A stepped area; the corners lie within `WIDTH` by `HEIGHT`."""

    corners: tuple[tuple[int, int], ...]
    peak: int
    agents: int


def concurrency(outcomes: Iterable[OutcomeEntry], along: Axis) -> Concurrency:
    """Agents that were planned and whose sources had not all arrived, over the run's time."""
    fresh = [entry for entry in outcomes if entry.age == 0]
    changes = [0] * (_BINS + 2)
    for entry in fresh:
        first, last = (_bin(moment, along) for moment in (entry.times.planned, _until(entry)))
        changes[first] += 1
        changes[last + 1] -= 1
    counts = list(accumulate(changes[: _BINS + 1]))
    peak = max(counts)
    return Concurrency(_area(counts, peak or 1), peak, len(fresh))


def _until(entry: OutcomeEntry) -> float:
    times = entry.times
    return times.collected if times.collected is not None else (times.judged or times.planned)


def _bin(seconds: float, along: Axis) -> int:
    return along.at(seconds) * _BINS // WIDTH


def _area(counts: list[int], peak: int) -> tuple[tuple[int, int], ...]:
    step = WIDTH / (_BINS + 1)
    corners = [(0, HEIGHT)]
    for index, count in enumerate(counts):
        level = HEIGHT - round(count * HEIGHT / peak)
        if level != corners[-1][1]:
            corners += [(round(index * step), corners[-1][1]), (round(index * step), level)]
    corners += [(WIDTH, corners[-1][1]), (WIDTH, HEIGHT)]
    return tuple(corners)
