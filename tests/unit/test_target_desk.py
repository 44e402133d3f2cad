"""Agents are judged once, when all they need has come, and pairs when both sides have."""

from __future__ import annotations

from itertools import count

from gapline.orchestrator.audit.pair_desk import PairDesk
from gapline.orchestrator.audit.target_desk import Judging, TargetDesk
from gapline.orchestrator.judged import Judged
from gapline.orchestrator.model.limit import Limit, Limits
from gapline.orchestrator.model.outcome import Found, Passed, Unknown
from gapline.orchestrator.model.problem import ProblemKind
from tests.unit.invented import DENIED, GATE_FILE, INSIDE_FILE, LEVEL_FILE, capture, gate_agent, level_agent, pair_agent


class Bench:
    """Desks of a host and a container, with a clock that ticks at every look."""

    def __init__(self, limits: dict[str, Limits] | None = None) -> None:
        self.judged: list[Judged] = []
        ticks = count()
        judging = Judging(limits or {}, lambda: float(next(ticks)), self.judged.append)
        self.host = TargetDesk("pve1", [level_agent()], judging)
        self.container = TargetDesk("pve1/7", [gate_agent()], judging)
        self.pair = PairDesk(self.host, self.container, [pair_agent()], judging)

    def answers(self) -> list[str]:
        """Which agents have answered, in order."""
        return [one.agent.id for one in self.judged]


def test_agent_is_judged_with_its_last_source() -> None:
    """Not before, and once."""
    bench = Bench()
    bench.container.receive(capture(INSIDE_FILE, "x"))
    assert bench.answers() == []
    bench.container.receive(capture(GATE_FILE, "open"))
    bench.container.receive(capture(GATE_FILE, "open"))
    assert bench.answers() == ["container.gate"]
    assert bench.container.agents == 1


def test_times_are_in_order() -> None:
    """Planned, collected, judged."""
    bench = Bench()
    bench.host.receive(capture(LEVEL_FILE, "50"))
    times = bench.judged[0].times
    assert times.collected is not None
    assert times.judged is not None
    assert times.planned < times.collected < times.judged


def test_giving_up_answers_for_the_rest_only() -> None:
    """What was judged stays; what waits is unknown, and was never collected."""
    bench = Bench()
    bench.host.receive(capture(LEVEL_FILE, "50"))
    bench.host.give_up(DENIED)
    bench.container.receive(capture(INSIDE_FILE, "x"))
    bench.container.give_up(DENIED)
    assert [type(one.outcome) for one in bench.judged] == [Passed, Unknown]
    assert bench.judged[1].times.collected is None
    assert list(bench.container.captures) == [INSIDE_FILE.key]


def test_limits_are_the_agents_own() -> None:
    """Each agent gets the limits under its id."""
    bench = Bench({"host.level": Limits({"least": Limit(value=60, origin="judgement")})})
    bench.host.receive(capture(LEVEL_FILE, "50"))
    assert isinstance(bench.judged[0].outcome, Found)


def test_pair_waits_for_both_sides() -> None:
    """A pair is judged as soon as the second fact is there, and once."""
    bench = Bench()
    bench.host.receive(capture(LEVEL_FILE, "50"))
    bench.pair.look()
    assert bench.answers() == ["host.level"]
    for source in (INSIDE_FILE, GATE_FILE):
        bench.container.receive(capture(source, "shut"))
    bench.pair.look()
    bench.pair.look(final=True)
    assert bench.answers() == ["host.level", "container.gate", "pair.gate"]
    assert bench.judged[2].target == "pve1/7"
    assert isinstance(bench.judged[2].outcome, Found)


def test_pair_is_judged_at_the_end_by_what_there_is() -> None:
    """Without one side the pair is unknown, not silent."""
    bench = Bench()
    bench.host.receive(capture(LEVEL_FILE, "50"))
    bench.pair.look(final=True)
    outcome = bench.judged[1].outcome
    assert isinstance(outcome, Unknown)
    assert outcome.problem.kind is ProblemKind.UNSEEN
