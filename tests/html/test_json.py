"""`run.json`: the same text for the same run, readable by everybody."""

from __future__ import annotations

import json
from datetime import timedelta, timezone

import pytest

from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import Run
from gapline.reports.json import stream, text
from tests.html.hostile import PAYLOADS, poisoned
from tests.html.pve_b import pve_b


def test_round_trip() -> None:
    """What is written is read as the same run, up to the order of records."""
    again = Run.model_validate_json(text(pve_b()))
    assert text(again) == text(pve_b())
    assert again.summary == pve_b().summary


def test_order_does_not_matter() -> None:
    """Agents finish in any order; the text does not show it."""
    run = pve_b()
    assert text(run.model_copy(update={"outcomes": run.outcomes[::-1], "layers": run.layers[::-1]})) == text(run)


def test_times_are_utc() -> None:
    """A run made in another time zone is written in UTC."""
    run = pve_b()
    local = run.run.started.astimezone(timezone(timedelta(hours=5, minutes=30)))
    moved = run.model_copy(update={"run": run.run.model_copy(update={"started": local})})
    assert text(moved) == text(run)
    assert json.loads(text(run))["run"]["started"].endswith("Z")


def test_one_record_per_line() -> None:
    """Every outcome is one line, so that `diff` and `grep` work."""
    lines = [line.rstrip(",") for line in text(pve_b()).splitlines() if line.startswith('{"target"')]
    assert len(lines) == len(pve_b().outcomes)
    assert all(json.loads(line)["status"] in set(Status) for line in lines)


def test_synthetic_is_said() -> None:
    """A worked example calls itself one."""
    assert json.loads(text(pve_b()))["run"]["synthetic"] is True


@pytest.mark.parametrize("name", PAYLOADS)
def test_hostile_text_is_inert(name: str) -> None:
    """Printable ASCII only, whatever was said, and every reader of JSON and of runs reads it."""
    written = text(poisoned(pve_b(), PAYLOADS[name]))
    assert all(line.isascii() and (line.isprintable() or not line) for line in written.split("\n"))
    json.loads(written)
    Run.model_validate_json(written)


def test_not_a_number() -> None:
    """JSON has no NaN; an unknown number is null."""
    run = pve_b().model_copy(update={"ceiling": {"tokens_per_s": float("nan")}})
    assert json.loads(text(run))["ceiling"] == {"tokens_per_s": None}


def test_pieces() -> None:
    """A fleet is written piece by piece."""
    assert max(map(len, stream(pve_b()))) < len(text(pve_b())) / 4
