"""When each agent was planned, collected and judged, on one axis for the whole run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gapline.orchestrator.model.run import OutcomeEntry, Times

WIDTH = 1000


@dataclass(frozen=True, slots=True)
class Axis:
    """Seconds from the start of the run to its last judgement, drawn `WIDTH` units wide."""

    seconds: float
    ticks: tuple[float, ...]  # seconds

    def at(self, seconds: float) -> int:
        """Where a moment lies; moments outside of the run lie at its edges."""
        return round(min(max(seconds / self.seconds, 0.0), 1.0) * WIDTH)


@dataclass(frozen=True, slots=True)
class Strip:
    """One agent on one target: a bar while its sources were under way, a mark where it was judged."""

    agent: str
    title: str
    start: int
    width: int
    arrived: bool  # False: the sources never arrived in full
    judged: int | None
    times: Times


def axis(outcomes: Iterable[OutcomeEntry]) -> Axis:
    """The axis that all strips of a run share. Results merged in from earlier runs do not stretch it."""
    moments = (moment for entry in outcomes if entry.age == 0 for moment in _moments(entry.times))
    seconds = max(moments, default=0.0) or 1.0
    return Axis(seconds, tuple(_ticks(seconds)))


def strips(entries: Iterable[OutcomeEntry], along: Axis) -> tuple[Strip, ...]:
    """The outcomes of one target in the order in which their answers came."""
    return tuple(strip(entry, along) for entry in sorted(entries, key=lambda entry: (_end(entry.times), entry.agent)))


def strip(entry: OutcomeEntry, along: Axis) -> Strip:
    """How one outcome is drawn."""
    times = entry.times
    start, end = along.at(times.planned), along.at(_end(times))
    return Strip(
        agent=entry.agent,
        title=entry.title,
        start=start,
        width=max(end - start, 2),
        arrived=times.collected is not None,
        judged=None if times.judged is None else along.at(times.judged),
        times=times,
    )


def _end(times: Times) -> float:
    return next((moment for moment in (times.collected, times.judged) if moment is not None), times.planned)


def _moments(times: Times) -> Iterator[float]:
    yield times.planned
    yield from (moment for moment in (times.collected, times.judged) if moment is not None)


def _ticks(seconds: float) -> Iterator[float]:
    """Round steps, four to nine of them."""
    step = 10.0**6
    for factor in _falling_steps():
        step = factor
        if seconds / step >= 4:  # noqa: PLR2004
            break
    yield from (index * step for index in range(int(seconds / step) + 1))


def _falling_steps() -> Iterator[float]:
    for exponent in range(5, -4, -1):
        yield from (factor * 10.0**exponent for factor in (5, 2, 1))
