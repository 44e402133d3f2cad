"""Whether a container was there while its host was asked about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.plan import PRESENT


class Presence:
    """Holds back what was missing until it is known whether the container itself was there.

    A file below /proc/PID that is not there can mean "there is no such thing" or "the container has stopped". Which of
    the two, the proof tells that is read behind them.
    """

    def __init__(self) -> None:
        self._held: dict[str, list[Capture]] = {}
        self._proof: dict[str, Problem | None] = {}  # why a container's proof is missing; None: it was there

    def pass_on(self, capture: Capture) -> Iterator[Capture]:
        """The captures that can be trusted now: this one, or this one and those that waited for it."""
        target = capture.target
        if capture.source == PRESENT.key:
            self._proof[target] = capture.problem
            yield from (self._as_it_was(held) for held in self._held.pop(target, []))
            yield capture
        elif "{init}" in capture.source and _missing(capture) and target not in self._proof:
            self._held.setdefault(target, []).append(capture)
        else:
            yield capture

    def _as_it_was(self, capture: Capture) -> Capture:
        problem = self._proof[capture.target]
        if problem is None:
            return capture
        if problem.kind in _ABSENT:
            detail = "the container stopped or restarted while it was read"
            hint = "Run its agents again when it is up."
            problem = Problem(kind=ProblemKind.NOT_RUNNING, detail=detail, hint=hint)
        return replace(capture, problem=problem)


_ABSENT = frozenset({ProblemKind.MISSING, ProblemKind.NOT_RUNNING})


def _missing(capture: Capture) -> bool:
    return capture.problem is not None and capture.problem.kind is ProblemKind.MISSING
