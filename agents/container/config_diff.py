"""A unified diff for a configuration file of which some lines were withheld."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gapline.agents.container.setting import WITHHELD

_CONTEXT = 3
_UNENDED = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `add` in front of a line (counted from 1; one beyond the last appends), and with `remove` in its place."""

    line: int
    remove: bool = False
    add: tuple[str, ...] = ()


def unified_diff(path: str, text: Sequence[str], edits: Iterable[Edit], *, ended: bool = True) -> str:
    """The diff as `patch FILE` takes it. Withheld lines are never part of it, for they read differently there.

    Context is the same on both sides of a change except at the ends of the file: to `patch`, uneven context says
    "at the end of the file". `ended`: the last line has its line feed.
    """
    by_line = _merged(edits)
    if not by_line:
        return ""
    out, shift, done = [f"--- {path}", f"+++ {path}"], 0, 0
    for group in _groups(by_line):
        hunk = _Hunk(text, by_line, group[0], group[-1], done)
        out.extend(hunk.lines(shift, ended=ended))
        shift += hunk.growth
        done = hunk.end
    return "\n".join(out) + "\n"


def _merged(edits: Iterable[Edit]) -> Mapping[int, Edit]:
    """One edit for each line that changes; equal additions at one place count once."""
    by_line: dict[int, Edit] = {}
    for edit in edits:
        known = by_line.get(edit.line, Edit(edit.line))
        add = tuple(dict.fromkeys((*known.add, *edit.add)))
        by_line[edit.line] = Edit(edit.line, known.remove or edit.remove, add)
    return {line: edit for line, edit in by_line.items() if edit.remove or edit.add}


def _groups(edits: Mapping[int, Edit]) -> Iterable[list[int]]:
    """Lines that change together: a line joins the one before when that one goes, so that nothing is in between."""
    group: list[int] = []
    for line in sorted(edits):
        if group and not (line == group[-1] + 1 and edits[group[-1]].remove):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


class _Hunk:
    """The changes on neighbouring lines `first` to `last`, with their context."""

    def __init__(self, text: Sequence[str], edits: Mapping[int, Edit], first: int, last: int, done: int) -> None:
        self._text, self._edits = text, edits
        body_end = last if edits[last].remove else last - 1  # last old line that belongs to the change itself
        following = next((line for line in sorted(edits) if line > last), len(text) + 1)
        before = self._clean(range(first - 1, done, -1))
        after = self._clean(range(body_end + 1, min(following, len(text) + 1)))
        n = min(
            before if before < first - 1 else _CONTEXT,
            after if body_end + after < len(text) else _CONTEXT,
            _CONTEXT,
        )
        self.start, self.end = max(first - n, 1), min(body_end + n, len(text))
        self._old = range(self.start, self.end + 1)
        self.growth = sum(len(e.add) - e.remove for line, e in edits.items() if first <= line <= last)
        self._first, self._last = first, last

    def _clean(self, lines: Iterable[int]) -> int:
        count = 0
        for line in lines:
            if count == _CONTEXT or WITHHELD in self._text[line - 1]:
                break
            count += 1
        return count

    def lines(self, shift: int, *, ended: bool) -> Iterable[str]:
        old, new = len(self._old), len(self._old) + self.growth
        old_start = self.start if old else self.start - 1
        new_start = self.start + shift if new else self.start + shift - 1
        yield f"@@ -{old_start},{old} +{new_start},{new} @@"
        for line in range(self.start, max(self.end, self._last) + 1):
            edit = self._edits.get(line) if self._first <= line <= self._last else None
            remove, add = (edit.remove, edit.add) if edit else (False, ())
            unended = not ended and line == len(self._text)
            if remove:
                yield from self._old_line("-", line, unended=unended)
            yield from (f"+{added}" for added in add)
            if not remove and line in self._old:
                yield from self._kept(line, unended=unended)

    def _kept(self, line: int, *, unended: bool) -> Iterable[str]:
        if unended and self._last > line:  # something follows, so the line gets its line feed
            yield from self._old_line("-", line, unended=True)
            yield f"+{self._text[line - 1]}"
        else:
            yield from self._old_line(" ", line, unended=unended)

    def _old_line(self, mark: str, line: int, *, unended: bool) -> Iterable[str]:
        yield mark + self._text[line - 1]
        if unended:
            yield _UNENDED
