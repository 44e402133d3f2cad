"""When something happened and how often, for people."""

from __future__ import annotations

from collections.abc import Sequence

from gapline.agents.host.log.fact import KernelLog, LogEvent

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def moment(log: KernelLog, event: LogEvent) -> str:
    """Such as "388.6 s after boot, 2 h ago"."""
    if event.seconds is None:
        return "at a time that the log does not give"
    told = f"{event.seconds:.1f} s after boot"
    ago = age(log, event)
    return told if ago is None else f"{told}, {_span(ago)} ago"


def times(events: Sequence[LogEvent]) -> int:
    """How many messages stand behind these events."""
    return sum(event.times for event in events)


def age(log: KernelLog, event: LogEvent) -> float | None:
    """Seconds since it happened; None where that is not known."""
    if event.seconds is None or log.uptime_seconds is None:
        return None
    return max(log.uptime_seconds - event.seconds, 0.0)


def _span(seconds: float) -> str:
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
