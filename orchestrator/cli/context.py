"""The lines around a cited one, taken from snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from gapline.orchestrator.model.capture import Line
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
            texts = sources.texts(source)
            if texts is not None:
                first = max(line - AROUND, 1)
                window = texts[first - 1 : line + AROUND]
                return tuple(Line(target, source, number, text) for number, text in enumerate(window, start=first))
        return ()

    def _read(self, target: str) -> tuple[_Sources, ...]:
        return tuple(_Sources(snapshot, target) for snapshot in self._snapshots if target in snapshot.targets)


class _Sources:
    """One target's captures by what evidence calls them: the source as shown, or a file of a pattern."""

    def __init__(self, snapshot: Snapshot, target: str) -> None:
        try:
            captures = tuple(snapshot.captures(target).values())
        except SnapshotError:
            captures = ()  # it was damaged after the run was judged; the cited lines themselves are in the run
        self._by_shown = {capture.shown: capture for capture in captures}
        self._patterns = tuple(capture for capture in captures if "glob:" in capture.source)
        self._cut: dict[str, Sequence[str] | None] = {}

    def texts(self, source: str) -> Sequence[str] | None:
        """The lines of a source, cut once however often they are asked for."""
        if source not in self._cut:
            capture = self._by_shown.get(source)
            self._cut[source] = capture.text.removesuffix("\n").split("\n") if capture else self._of_pattern(source)
        return self._cut[source]

    def _of_pattern(self, path: str) -> Sequence[str] | None:
        """The lines of one file; in a pattern's output each stands behind its path."""
        prefix = f"{path}:"
        for capture in self._patterns:
            if any(fnmatchcase(path, pattern) for pattern in capture.shown.split()):
                lines = self.texts(capture.shown) or ()
                if own := [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]:
                    return own
        return None
