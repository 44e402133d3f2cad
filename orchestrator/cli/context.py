"""The lines around a cited one, taken from snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import SnapshotError
from gapline.orchestrator.snapshot import Snapshot

AROUND = 3  # lines before and after: enough to recognise the place
_TARGETS = 4  # read at the same time: a report goes through them one after the other


class SnapshotContext:
    """Gives the lines around; the first of the snapshots that has the target and source is asked."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = tuple(snapshots)
        self._sources = lru_cache(maxsize=_TARGETS)(self._read)

    def __call__(self, target: str, source: str, line: int) -> tuple[Line, ...]:
        """The lines around; none when no snapshot has the source."""
        for sources in self._sources(target):
            if (capture := sources.get(source)) is not None:
                return tuple(one for one in _lines(capture, source) if abs(one.number - line) <= AROUND)
        return ()

    def _read(self, target: str) -> tuple[Mapping[str, Capture], ...]:
        return tuple(_by_shown(snapshot, target) for snapshot in self._snapshots if target in snapshot.targets)


def _by_shown(snapshot: Snapshot, target: str) -> Mapping[str, Capture]:
    """The captures by what evidence calls them: the source as shown, and each file of a pattern."""
    try:
        captures = tuple(snapshot.captures(target).values())
    except SnapshotError:
        return {}  # it was damaged after the run was judged; the cited lines themselves are in the run
    of_files = {path: capture for capture in captures if "glob:" in capture.source for path in capture.files()}
    return of_files | {capture.shown: capture for capture in captures}


def _lines(capture: Capture, source: str) -> tuple[Line, ...]:
    return tuple(capture.lines()) if capture.shown == source else capture.files()[source]
