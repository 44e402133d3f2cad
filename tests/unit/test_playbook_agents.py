"""A playbook against the agents that exist, and which of them run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapline.orchestrator.model.agent import Agent, AnyAgent, Facts, Layer, PairAgent, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import ConfigError, PlanError
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, Passed
from gapline.orchestrator.playbook.check import check
from gapline.orchestrator.playbook.load import load
from gapline.orchestrator.playbook.playbook import Playbook
from gapline.orchestrator.playbook.select import select_agents


class Nothing(Fact):
    """A fact without content."""


def parse(captures: Captures) -> Nothing:
    """Read nothing."""
    assert not captures
    return Nothing()


def judge(fact: Nothing, limits: Limits) -> Outcome:
    """Find nothing."""
    assert limits is not None
    return Passed(fact)


def judge_pair(facts: Facts, limits: Limits) -> Outcome:
    """Find nothing in a pair."""
    return judge(facts.of(Nothing), limits)


def agent(id_: str, *limits: str) -> AnyAgent:
    """An agent that reads nothing."""
    return Agent(
        id=id_,
        title=id_,
        layer=Layer.SYSTEM,
        scope=Scope.HOST,
        fact=Nothing,
        sources={},
        parse=parse,
        judge=judge,
        codes=(),
        limits=limits,
    )


AGENTS = (
    agent("host.cpu", "lowest", "names"),
    agent("host.numa"),
    agent("host.pcie", "width"),
    agent("bench.roof"),
    PairAgent(id="pair.devices", title="", layer=Layer.CONTAINER, needs=(), judge=judge_pair, codes=()),
)
GOOD = """\
  host.cpu: {level: quick, limits: {lowest: {value: 1, origin: x}, names: {value: [a], origin: x}}}
  host.numa: {level: full, enabled: false}
  bench.roof: {level: bench}
  pair.devices: {level: full}
"""


@pytest.fixture
def good(tmp_path: Path) -> Playbook:
    """A playbook that fits the agents."""
    return book(tmp_path, GOOD)


def book(folder: Path, agents: str) -> Playbook:
    """A playbook with these agents."""
    path = folder / "book.yaml"
    path.write_text(f"version: 1\nruns: [quick, full]\nagents:\n{agents}")
    return load(str(path))


def ids(agents: tuple[AnyAgent, ...]) -> list[str]:
    """The ids of agents."""
    return [one.id for one in agents]


def test_a_playbook_that_fits(good: Playbook) -> None:
    """An agent that no playbook names is no fault."""
    check(good, AGENTS)


def test_what_does_not_fit_comes_together(tmp_path: Path) -> None:
    """Unknown agents, undeclared limits and missing limits, also of agents that do not run."""
    playbook = book(
        tmp_path,
        "  host.cup: {level: quick}\n"
        "  host.cpu: {level: bench, limits: {lowst: {value: 1, origin: x}, names: {value: [a], origin: x}}}\n"
        "  host.numa: {level: full, limits: {most: {value: 1, origin: x}}}\n",
    )
    with pytest.raises(ConfigError) as caught:
        check(playbook, AGENTS)
    place = f"{tmp_path}/book.yaml"
    assert [(str(fault), fault.hint) for fault in caught.value.faults] == [
        (f"{place}:4:3: there is no agent host.cup", "Did you mean host.cpu?"),
        (f"{place}:5:3: agent host.cpu needs the limit lowest", "Set lowest with a value and its origin."),
        (f"{place}:5:37: agent host.cpu has no limit lowst", "Did you mean lowest?"),
        (f"{place}:6:37: agent host.numa has no limit most", ""),
    ]


def test_without_ids_the_playbook_decides(good: Playbook) -> None:
    """Disabled agents and agents of other levels do not run."""
    assert ids(select_agents(good, AGENTS, ())) == ["host.cpu", "pair.devices"]


@pytest.mark.parametrize(
    ("wanted", "selected"),
    [
        (["host.cpu"], ["host.cpu"]),
        (["bench.roof"], ["bench.roof"]),
        (["host.numa", "host.cpu", "host.cpu"], ["host.cpu", "host.numa"]),
        (["host.*"], ["host.cpu"]),
        (["*"], ["host.cpu", "pair.devices"]),
        (["*.devices", "host.numa"], ["host.numa", "pair.devices"]),
    ],
)
def test_named_agents_run_whatever_their_level(good: Playbook, wanted: list[str], selected: list[str]) -> None:
    """An id in full always counts; a pattern picks from what the playbook runs."""
    assert ids(select_agents(good, AGENTS, wanted)) == selected


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ("host.cup", "there is no agent 'host.cup'", "Did you mean host.cpu?"),
        ("frob.*", "no agent fits frob.*", "`gapline agents` lists them."),
        ("bench.*", "playbook book runs no agent that fits bench.*", "bench.roof"),
        ("host.pcie", "playbook book sets no width for agent host.pcie", "extends it"),
    ],
)
def test_agents_that_cannot_run(good: Playbook, wanted: str, message: str, hint: str) -> None:
    """The message says why, the hint what to do."""
    with pytest.raises(PlanError) as caught:
        select_agents(good, AGENTS, [wanted])
    assert message in str(caught.value)
    assert hint in caught.value.hint
