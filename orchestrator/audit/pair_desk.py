"""The pair agents of one container, judged when both sides have answered."""

from __future__ import annotations

from collections.abc import Iterable

from gapline.orchestrator.analyse import analyse_pair
from gapline.orchestrator.audit.target_desk import Judging, TargetDesk
from gapline.orchestrator.judged import Judged
from gapline.orchestrator.model.agent import PairAgent
from gapline.orchestrator.model.run import Times


class PairDesk:
    """Judges each pair agent of a container once."""

    def __init__(self, host: TargetDesk, container: TargetDesk, pairs: Iterable[PairAgent], judging: Judging) -> None:
        self._host, self._container = host, container
        self._judging = judging
        self._planned = judging.clock()
        self._waiting = list(pairs)

    def look(self, *, final: bool = False) -> None:
        """Judge the pairs whose both sides are there; with `final` also the others, by what there is."""
        outcomes = {**self._host.outcomes, **self._container.outcomes}
        for pair in tuple(self._waiting):
            if not final and not all(kind in outcomes for kind in (*pair.needs, *pair.wants)):
                continue
            self._waiting.remove(pair)
            collected = self._judging.clock()
            outcome = analyse_pair(pair, outcomes, self._judging.limits_of(pair))
            times = Times(planned=self._planned, collected=collected, judged=self._judging.clock())
            self._judging.report(Judged(self._container.target, pair, outcome, times))
