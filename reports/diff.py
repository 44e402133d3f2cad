"""A unified diff as lines with their kinds, so that a page can mark them without reading them as anything but text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a line of a unified diff does."""

    FILE = "file"
    PLACE = "place"
    ADD = "add"
    REMOVE = "remove"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line with its sign."""

    kind: Kind
    text: str


def diff_lines(diff: str) -> tuple[DiffLine, ...]:
    """The lines of a unified diff; none for an empty one.

    `---` and `+++` name files only before the first hunk: further down they are a removed `--` and an added `++`.
    """
    found: list[DiffLine] = []
    in_hunk = False
    for text in diff.rstrip("\n").split("\n") if diff.strip() else ():
        in_hunk = in_hunk or text.startswith("@@")
        found.append(DiffLine(_kind(text, in_hunk=in_hunk), text))
    return tuple(found)


def _kind(text: str, *, in_hunk: bool) -> Kind:
    if text.startswith("@@"):
        return Kind.PLACE
    if not in_hunk:
        return Kind.FILE
    return {"+": Kind.ADD, "-": Kind.REMOVE}.get(text[:1], Kind.SAME)
