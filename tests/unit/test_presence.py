"""Missing because it is not there, or because the container has gone: told apart by the proof."""

from __future__ import annotations

import pytest

from gapline.orchestrator.audit.presence import Presence
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.plan import PRESENT
from tests.unit.invented import GATE_FILE, INSIDE_FILE, capture

MISSING = Problem(kind=ProblemKind.MISSING, detail="No such file or directory")
LOST = Problem(kind=ProblemKind.DROPPED, detail="the connection was lost")
SEVEN = "pve1/7"


def kinds(captures: list[Capture]) -> list[ProblemKind | None]:
    """Their problems."""
    return [one.problem.kind if one.problem else None for one in captures]


def missing() -> Capture:
    """A file of the container's init that is not there."""
    return capture(GATE_FILE, problem=MISSING, target=SEVEN)


@pytest.mark.parametrize(
    ("proof", "kind"),
    [
        (None, ProblemKind.MISSING),
        (MISSING, ProblemKind.NOT_RUNNING),
        (Problem(kind=ProblemKind.NOT_RUNNING, detail="stopped"), ProblemKind.NOT_RUNNING),
        (LOST, ProblemKind.DROPPED),
    ],
    ids=["was there", "has gone", "never ran", "nobody knows"],
)
def test_missing_waits_for_the_proof(proof: Problem | None, kind: ProblemKind) -> None:
    """With its init there it was missing; without, the container has stopped; unread, nothing is claimed."""
    presence = Presence()
    assert list(presence.pass_on(missing())) == []
    released = list(presence.pass_on(capture(PRESENT, problem=proof, target=SEVEN)))
    assert kinds(released) == [kind, proof.kind if proof else None]
    assert [one.source for one in released] == [GATE_FILE.key, PRESENT.key]


def test_everything_else_passes_at_once() -> None:
    """Content, other problems, sources that do not name the init, and whatever comes behind the proof."""
    presence = Presence()
    for one in (
        capture(GATE_FILE, "open", target=SEVEN),
        capture(GATE_FILE, problem=LOST, target=SEVEN),
        capture(INSIDE_FILE, problem=MISSING, target=SEVEN),
    ):
        assert list(presence.pass_on(one)) == [one]
    list(presence.pass_on(capture(PRESENT, target=SEVEN)))
    assert list(presence.pass_on(missing())) == [missing()]


def test_containers_wait_for_their_own_proof() -> None:
    """The proof of one says nothing about another."""
    presence = Presence()
    assert list(presence.pass_on(missing())) == []
    assert len(list(presence.pass_on(capture(PRESENT, target="pve1/8")))) == 1
    assert len(list(presence.pass_on(capture(PRESENT, target=SEVEN)))) == 2
