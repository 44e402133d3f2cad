"""The five layers of elimination: what a run's outcomes add up to. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gapline.orchestrator.model.agent import Layer
from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import LayerEntry, OutcomeEntry, TargetEntry, Verdict

_NOT_LOOKED_AT = {
    Layer.CEILING: "no ceiling was computed and no rate was measured",
    Layer.SYSTEM: "no agent looked at the host",
    Layer.CONTAINER: "no agent looked into a container",
    Layer.COMMUNICATION: "no agent looked at the communication between GPUs",
    Layer.KERNELS: "no kernel was timed",
}


def layer_entries(targets: Sequence[TargetEntry], outcomes: Sequence[OutcomeEntry]) -> tuple[LayerEntry, ...]:
    """All five, in their order, each with its verdict and the reason."""
    return tuple(_layer(layer, targets, [one for one in outcomes if one.layer == layer]) for layer in Layer)


def _layer(layer: Layer, targets: Sequence[TargetEntry], outcomes: Sequence[OutcomeEntry]) -> LayerEntry:
    verdict, reason = _verdict(layer, targets, outcomes)
    return LayerEntry(layer=layer, verdict=verdict, reason=reason)


def _verdict(layer: Layer, targets: Sequence[TargetEntry], outcomes: Sequence[OutcomeEntry]) -> tuple[Verdict, str]:
    serious = [
        finding
        for outcome in outcomes
        for finding in outcome.findings
        if finding.severity.rank <= Severity.MEDIUM.rank and not finding.waived
    ]
    if serious:
        worst = min(serious, key=lambda finding: finding.severity.rank)
        return Verdict.SUSPECT, f"{_count(len(serious), 'finding')} of medium or above, the worst: {worst.title}"
    looked = [outcome for outcome in outcomes if outcome.status in (Status.PASSED, Status.FOUND)]
    if not looked:
        return Verdict.NOT_TESTED, _why_not(layer, targets, outcomes)
    gaps = [
        (outcome, outcome.problem or outcome.unseen[0]) for outcome in outcomes if outcome.problem or outcome.unseen
    ]
    if gaps:
        first, problem = gaps[0]
        missing = f"{_count(len(gaps), 'answer')} missing or incomplete"
        return Verdict.NOT_TESTED, f"{missing}: {first.agent} on {first.target}: {problem.detail}"
    agents, seen = {outcome.agent for outcome in looked}, {outcome.target for outcome in looked}
    return (
        Verdict.CLEARED,
        f"{_count(len(agents), 'agent')} on {_count(len(seen), 'target')}, nothing of medium or above",
    )


def _why_not(layer: Layer, targets: Sequence[TargetEntry], outcomes: Sequence[OutcomeEntry]) -> str:
    if not outcomes:
        return _NOT_LOOKED_AT[layer]
    unreached = [target for target in targets if target.problem is not None]
    if unreached:
        return f"{unreached[0].id}: {unreached[0].problem.detail if unreached[0].problem else ''}"
    return f"{outcomes[0].agent} on {outcomes[0].target}: {outcomes[0].reason}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
