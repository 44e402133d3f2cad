"""The five layers of elimination."""

from __future__ import annotations

import pytest

from gapline.orchestrator.layers import layer_entries
from gapline.orchestrator.model.finding import Effect, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import OutcomeEntry, Verdict
from tests.unit.invented import DENIED, entry, finding, found, reported, target, unknown


def verdict(*outcomes: OutcomeEntry) -> tuple[Verdict, str]:
    """Of the system layer."""
    layer = layer_entries([target()], outcomes)[1]
    return layer.verdict, layer.reason


def test_all_five_stand_in_their_order() -> None:
    """Also when nothing looked at them; then each says what is missing."""
    layers = layer_entries([target()], [])
    assert [layer.layer for layer in layers] == [1, 2, 3, 4, 5]
    assert {layer.verdict for layer in layers} == {Verdict.NOT_TESTED}
    assert len({layer.reason for layer in layers}) == 5


def test_cleared_needs_every_answer() -> None:
    """All seen and nothing of weight."""
    assert verdict(entry(), found(finding(severity=Severity.LOW), agent="b"))[0] is Verdict.CLEARED


@pytest.mark.parametrize("severity", [Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM])
def test_suspect_from_medium_on(severity: Severity) -> None:
    """One is enough, also where other answers are missing."""
    effect = Effect.BREAKS
    said, reason = verdict(unknown(agent="b"), found(finding(severity=severity, effect=effect)))
    assert said is Verdict.SUSPECT
    assert "1 finding" in reason


def test_a_missing_answer_clears_nothing() -> None:
    """Could not look is never fine."""
    said, reason = verdict(entry(), unknown(agent="b"))
    assert said is Verdict.NOT_TESTED
    assert DENIED.detail in reason


def test_a_partly_seen_answer_clears_nothing() -> None:
    """Harmless findings beside something unseen are not a cleared layer."""
    said, reason = verdict(found(finding(severity=Severity.LOW), unseen=(DENIED,)))
    assert said is Verdict.NOT_TESTED
    assert DENIED.detail in reason


def test_nothing_applicable_clears_nothing() -> None:
    """Nobody looked, so nobody knows."""
    assert verdict(entry(Status.NOT_APPLICABLE, reason="no gauge"))[0] is Verdict.NOT_TESTED


def test_unreached_target_is_the_reason() -> None:
    """A host that was not reached is named."""
    layer = layer_entries([target("pve9", DENIED)], [unknown(target="pve9")])[1]
    assert layer.reason == "pve9: only root may look"


def test_waived_findings_do_not_make_suspect() -> None:
    """A waiver is a decision."""
    waived = found().model_copy(update={"findings": (reported(finding(), waived=True),)})
    assert verdict(waived)[0] is Verdict.CLEARED
