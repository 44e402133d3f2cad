"""Looking must not change what is looked at; where it did, the run says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gapline.orchestrator.discovery.nodes import AFTER, BEFORE, changed
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem, ProblemKind


def listings(before: str, after: str, problem: Problem | None = None) -> dict[str, Capture]:
    """Two captures by their keys."""
    return {
        BEFORE.key: Capture("pve1", BEFORE.key, "nodes_before", before.encode()),
        AFTER.key: Capture("pve1", AFTER.key, "nodes_after", after.encode(), problem=problem),
    }


def test_appeared_and_went() -> None:
    """Both directions are told, with the node's numbers."""
    problem = changed(listings("/dev/nvidia0 c3:0 666\n", "/dev/nvidiactl c3:ff 666\n"))
    assert problem is not None
    assert "/dev/nvidiactl c3:ff 666 appeared" in problem.detail
    assert "/dev/nvidia0 c3:0 666 went" in problem.detail


@pytest.mark.parametrize(
    "captures",
    [
        listings("/dev/nvidia0 c3:0 666\n", "/dev/nvidia0 c3:0 666\n"),
        listings("x\n", "y\n", Problem(kind=ProblemKind.UNSEEN, detail="an old snapshot")),
        {},
    ],
)
def test_nothing_is_claimed_without_a_difference(captures: dict[str, Capture]) -> None:
    """The same, not seen, or never listed."""
    assert changed(captures) is None


def test_listing_in_a_real_shell(tmp_path: Path) -> None:
    """Nodes, a folder that does not exist, and an exit status that is no error."""
    (tmp_path / "nvidia0").touch(0o640)
    done = subprocess.run(
        ["sh", "-c", BEFORE.text.replace("/dev/", f"{tmp_path}/")], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{tmp_path}/nvidia0 0:0 640\n"
