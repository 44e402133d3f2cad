"""The log of a run: readable by its owner, complete for an operator, without secrets."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from gapline.orchestrator.audit.log import log_capture, log_event
from gapline.orchestrator.audit.progress import AgentJudged, HostFinished, HostStarted, TargetPlanned
from gapline.orchestrator.model.outcome import Found, NotApplicable, Passed, Unknown
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.run_log import logged, quiet_unless_logged, without_secrets
from tests.unit.invented import DENIED, LEVEL_FILE, Level, capture, finding

FACT = Level(percent=3)


@pytest.fixture(autouse=True)
def _defaults() -> Iterator[None]:
    """Structlog's configuration is global."""
    yield
    structlog.reset_defaults()


def filtered(**event: Any) -> dict[str, Any]:
    """The event as it is written."""
    return dict(without_secrets(None, "info", event))


def lines(path: Path) -> list[dict[str, Any]]:
    """The log."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "event",
    [
        {"password": "hunter2"},
        {"ssh_passphrase": "hunter2"},
        {"HF_TOKEN": "hunter2"},
        {"api_key": ["hunter2"]},
        {"detail": "started with --token hunter2"},
        {"detail": "TOKEN=hunter2"},
        {"detail": "env HF_TOKEN=hunter2 NVIDIA_API_KEY_2=hunter2"},
        {"detail": "password: hunter2"},
        {"detail": "Authorization: Bearer hunter2"},
        {"detail": "https://user:hunter2@mirror/simple"},
        {"nested": {"env": [{"secret": "hunter2"}, "api-key=hunter2"]}},
        {"object": Path("/x/token=hunter2")},
    ],
)
def test_secrets_are_withheld(event: dict[str, Any]) -> None:
    """By their name or by their form, at any depth; that something was there is still said."""
    told = filtered(**event)
    assert "hunter2" not in json.dumps(told)
    assert "withheld" in json.dumps(told)


def test_everything_else_is_kept() -> None:
    """Numbers, flags, words and places."""
    event = {"target": "pve1/7", "attempt": 2, "passing": True, "x": None, "findings": ["high a gpu0"], "s": 0.5}
    assert filtered(**event) == event


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_filter_never_raises(value: object) -> None:
    """Whatever is logged can be written."""
    json.dumps(filtered(event=value))


def test_log_is_private_and_one_object_a_line(tmp_path: Path) -> None:
    """Appended, for the owner only, with level and time."""
    path = tmp_path / "log.jsonl"
    for _ in range(2):
        with logged(path):
            structlog.get_logger().info("it", target="pve1", odd="\ud800\x1b[2J")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first, second = lines(path)
    assert first["event"] == second["event"] == "it"
    assert first["level"] == "info"
    assert first["timestamp"].endswith("Z")


def test_nothing_is_printed_where_no_run_is_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output belongs to the answer."""
    quiet_unless_logged()
    structlog.get_logger().error("before")
    with logged(tmp_path / "log"):
        quiet_unless_logged()
        structlog.get_logger().info("during")
    structlog.get_logger().error("after")
    assert capsys.readouterr() == ("", "")
    assert [line["event"] for line in lines(tmp_path / "log")] == ["during"]


def test_what_an_operator_needs(tmp_path: Path) -> None:
    """Hosts, answers with target and agent, and problems in words."""
    bug = Problem(kind=ProblemKind.DEFECT, detail="agent host.level failed")
    with logged(tmp_path / "log"):
        for event in (
            HostStarted("pve1"),
            TargetPlanned("pve1", 4),
            AgentJudged("pve1", "host.level", Passed(FACT)),
            AgentJudged("pve1", "host.level", Found(FACT, (finding(),))),
            AgentJudged("pve1", "host.level", NotApplicable("no gauge")),
            AgentJudged("pve1", "host.level", Unknown(DENIED)),
            AgentJudged("pve1", "host.level", Unknown(bug)),
            HostFinished("pve1", None),
            HostFinished("pve1", DENIED),
        ):
            log_event(event)
    told = [{k: v for k, v in line.items() if k != "timestamp"} for line in lines(tmp_path / "log")]
    judged = {"event": "agent.judged", "level": "info", "target": "pve1", "agent": "host.level"}
    assert told == [
        {"event": "host.started", "level": "info", "target": "pve1"},
        {"event": "target.planned", "level": "info", "target": "pve1", "agents": 4},
        judged | {"status": "passed"},
        judged | {"status": "found", "findings": ["high level.low gauge"]},
        judged | {"status": "not_applicable", "reason": "no gauge"},
        judged | {"status": "unknown", "problem": "denied", "detail": "only root may look"},
        judged | {"status": "unknown", "problem": "defect", "detail": "agent host.level failed", "level": "error"},
        {"event": "host.finished", "level": "info", "target": "pve1"},
        {"event": "host.finished", "level": "warning", "target": "pve1", "problem": "denied", "detail": DENIED.detail},
    ]


def test_readings_that_failed_are_logged_and_absent_ones_not(tmp_path: Path) -> None:
    """A file that a machine does not have is no event."""
    missing = Problem(kind=ProblemKind.MISSING, detail="No such file or directory")
    with logged(tmp_path / "log"):
        for problem in (None, missing, DENIED):
            log_capture(capture(LEVEL_FILE, problem=problem))
    (line,) = lines(tmp_path / "log")
    assert (line["event"], line["source"], line["problem"]) == ("source.unread", "file:/proc/gauge", "denied")
