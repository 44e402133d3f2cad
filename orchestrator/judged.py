"""One agent's outcome on one target, with the times it took."""

from __future__ import annotations

from dataclasses import dataclass

from gapline.orchestrator.model.agent import AnyAgent
from gapline.orchestrator.model.outcome import Outcome
from gapline.orchestrator.model.run import Times


@dataclass(frozen=True, slots=True)
class Judged:
    """What comes out of judging, before it is written down."""

    target: str
    agent: AnyAgent
    outcome: Outcome
    times: Times
