"""What came back for a source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from gapline.orchestrator.model.errors import CollectError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.problem import Problem, ProblemKind

EVIDENCE_WIDTH = 500


class Line(NamedTuple):
    """One line of a capture with the place it came from. A big host has thousands: this is the cheapest value."""

    target: str
    source: str
    number: int
    text: str

    @property
    def evidence(self) -> Evidence:
        """The line as a finding cites it, cut at `EVIDENCE_WIDTH` characters."""
        return Evidence(target=self.target, source=self.source, line=self.number, text=self.text[:EVIDENCE_WIDTH])


@dataclass(frozen=True, slots=True)
class Capture:
    """The bytes, exit status and duration of one reading, or the problem that kept it from being complete.

    A capture with a problem may still hold what arrived before it. `shown` is the source as a person would type
    it, with its placeholders filled in; `source` is the stable key.
    """

    target: str
    source: str
    shown: str
    out: bytes = b""
    err: bytes = b""
    exit: int | None = 0
    seconds: float = 0.0
    truncated: bool = False
    problem: Problem | None = None

    @property
    def text(self) -> str:
        """Output as text; bytes that are not UTF-8 stay visible, each as a backslash, x and two digits."""
        return self.out.decode("utf-8", "backslashreplace")

    def lines(self) -> Iterator[Line]:
        """All lines, numbered from 1, without their ends. Splits at line feeds only."""
        text = self.text
        if not text:
            return
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            yield Line(self.target, self.shown, number, line)

    def first(self) -> Line:
        """The first line; an empty one when there is no output."""
        return next(self.lines(), Line(self.target, self.shown, 1, ""))

    def error(self) -> str:
        """The first line of standard error, for messages."""
        return self.err.decode("utf-8", "backslashreplace").strip().split("\n", 1)[0]

    def files(self) -> Mapping[str, tuple[Line, ...]]:
        """For a `Glob`: the lines of each file by its path. Each line cites its own file and line number.

        PCI paths contain colons, so the path is cut with the pattern itself and not at the first colon; the name of the
        file itself must not contain one where the pattern leaves it open.
        """
        cut = _path_pattern(self.shown).match
        found: dict[str, list[Line]] = {}
        path, prefix, of_file, target = "", "\n", [], self.target
        for text in self.text.split("\n"):
            # The lines of a file stand together: the pattern is needed at its first line only.
            if not text.startswith(prefix):
                match = cut(text)
                if match is None:
                    continue
                prefix, path = match[0], match[1]
                of_file = found.setdefault(path, [])
            of_file.append(Line(target, path, len(of_file) + 1, text[len(prefix) :]))
        return {path: tuple(lines) for path, lines in found.items()}


class Captures(Mapping[str, Capture]):
    """An agent's captures by the names it gave its sources."""

    __slots__ = ("_by_name",)

    def __init__(self, by_name: Mapping[str, Capture]) -> None:
        self._by_name = dict(by_name)

    def __getitem__(self, name: str) -> Capture:
        """The capture as it is, with or without a problem."""
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def need(self, name: str) -> Capture:
        """The capture, complete.

        Raises:
            CollectError: it could not be read; the agent's outcome is then unknown.
        """
        capture = self._by_name[name]
        if capture.problem is not None:
            raise CollectError(capture.target, capture.shown, capture.problem)
        return capture

    def have(self, name: str) -> Capture | None:
        """The capture, or None when it is not there *because the thing itself is absent*.

        Raises:
            CollectError: it could not be read for any other reason, so its absence is not known.
        """
        capture = self._by_name[name]
        if capture.problem is not None and capture.problem.kind is ProblemKind.MISSING:
            return None
        return self.need(name)


@cache
def _path_pattern(patterns: str) -> re.Pattern[str]:
    """A regular expression for ``path:`` where the path matches one of the blank-separated shell patterns.

    A name has no colon where its end is open: ``/etc/modprobe.d/*`` must not take in what a line says before a colon.
    """
    return re.compile(f"({'|'.join(map(_alternative, patterns.split()))}):")


def _alternative(pattern: str) -> str:
    parts = re.split(r"(\*|\?)", pattern)
    regex = [{"*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in parts]
    if parts[-2:] == ["*", ""]:
        regex[-2] = "[^/:]*"
    return "".join(regex)
