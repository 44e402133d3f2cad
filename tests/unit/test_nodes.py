"""Looking must not change what is looked at; where it did, the run says so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gapline.orchestrator.discovery.nodes import AFTER, BEFORE, changed, none_there
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem, ProblemKind

NODE = "/dev/nvidia0|character special file|c3|0|666|0|0"
CONTROL = "/dev/nvidiactl|character special file|c3|ff|666|0|0"
NOT_SEEN = Problem(kind=ProblemKind.UNSEEN, detail="an old snapshot")
ABSENT = Problem(kind=ProblemKind.MISSING, detail="no such file")


def listings(
    before: str, after: str, *, first: Problem | None = None, second: Problem | None = None
) -> dict[str, Capture]:
    """Two captures by their keys."""
    return {
        BEFORE.key: Capture("pve1", BEFORE.key, "before", before.encode(), problem=first),
        AFTER.key: Capture("pve1", AFTER.key, "after", after.encode(), problem=second),
    }


def test_appeared_and_went() -> None:
    """Both directions are told, with the node's numbers."""
    problem = changed(listings(f"{NODE}\n", f"{CONTROL}\n"))
    assert problem is not None
    assert "/dev/nvidiactl (character special file|c3|ff|666|0|0) appeared" in problem.detail
    assert "/dev/nvidia0 (character special file|c3|0|666|0|0) went" in problem.detail


def test_appeared_where_there_was_nothing() -> None:
    """Nothing to list is a listing too."""
    problem = changed(listings("", f"{NODE}\n", first=ABSENT))
    assert problem is not None
    assert "appeared" in problem.detail


@pytest.mark.parametrize(
    "captures",
    [listings(f"{NODE}\n", f"{NODE}\n"), listings("", "", first=ABSENT), listings("x", "y", second=NOT_SEEN), {}],
)
def test_nothing_is_claimed_without_a_difference(captures: dict[str, Capture]) -> None:
    """The same, nothing at all, not seen, or never listed."""
    assert changed(captures) is None


def test_nobody_is_sent_where_the_driver_is_known_to_be_down() -> None:
    """Only a listing that was seen tells that there is no control node."""
    assert none_there(listings("", "", first=ABSENT))
    assert none_there(listings(f"{NODE}\n", ""))
    assert not none_there(listings(f"{CONTROL}\n", ""))
    assert not none_there(listings("", "", first=NOT_SEEN))
    assert not none_there({})


def test_second_listing_in_a_real_shell(tmp_path: Path) -> None:
    """It prints what the first one prints, and its exit status is no error."""
    (tmp_path / "nvidia0").touch(0o640)
    script = AFTER.text.replace("/dev/", f"{tmp_path}/")
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}/nvidia0|regular empty file|0|0|640|{os.getuid()}|{os.getgid()}\n"
