"""What is read where, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapline.orchestrator.discovery.containers import SeenContainer, State
from gapline.orchestrator.discovery.nodes import AFTER
from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.model.agent import AnyAgent, Scope
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File
from gapline.orchestrator.plan import (
    PRESENT,
    SURVEY,
    all_sources,
    container_items,
    frozen,
    host_lanes,
    with_needed,
    with_pairs,
)
from tests.unit.invented import EVERYONE, GATE_FILE, INSIDE_FILE, LEVEL_FILE, gate_agent, level_agent, pair_agent, plan

HOST = Host(name="pve1", address="192.0.2.1")
CONTAINER = SeenContainer("7", State.RUNNING, "41", "/etc/pve/lxc/7.conf", "/lxc/7", "GPU process")
SMI = Command(("nvidia-smi", "-q"), wakes_gpu=True)
DMESG = Command(("dmesg",))


def ids(agents: tuple[AnyAgent, ...]) -> list[str]:
    """Their ids."""
    return [agent.id for agent in agents]


def test_equal_sources_are_read_once() -> None:
    """Two agents with the same source share its reading; the survey's too."""
    hostname = SURVEY["hostname"]
    agents = (level_agent(), level_agent("host.other", sources={"a": LEVEL_FILE, "b": hostname}))
    lanes = host_lanes(plan(HOST, agents=agents), HOST)
    sources = [item.source for item in lanes.quick]
    assert sources.count(LEVEL_FILE) == sources.count(hostname) == 1


def test_commands_wait_behind_files_and_what_wakes_a_gpu_comes_last() -> None:
    """Observing must not heal: nothing that can load the driver runs before everything else was read."""
    agents = (level_agent(sources={"level": LEVEL_FILE, "smi": SMI, "dmesg": DMESG}),)
    lanes = host_lanes(plan(HOST, agents=agents), HOST)
    assert {item.source for item in lanes.quick} == {*SURVEY.values(), LEVEL_FILE}
    assert [item.source for item in lanes.slow] == [DMESG]
    assert [item.source for item in lanes.last] == [SMI, AFTER]
    assert host_lanes(plan(HOST), HOST).last == ()


def test_proof_of_presence_stands_between_outside_and_inside() -> None:
    """What the host says about a container's init is followed by the proof that it was there, before anyone enters."""
    items = container_items(plan(HOST), HOST, CONTAINER)
    assert [item.source for item in items] == [GATE_FILE, PRESENT, INSIDE_FILE]
    assert [item.enter for item in items] == [None, None, "7"]
    assert {item.target for item in items} == {"pve1/7"}


def test_no_proof_where_nobody_asks_about_the_init() -> None:
    """A container whose configuration alone is read needs none."""
    agents = (gate_agent(sources={"gate": File("{config}")}),)
    assert PRESENT not in all_sources(agents, Scope.CONTAINER)
    assert [item.source for item in container_items(plan(HOST, agents=agents), HOST, CONTAINER)] == [File("{config}")]


def test_printed_sources_are_the_read_ones() -> None:
    """What `gapline plan` prints and what a host and its container are asked are the same."""
    lanes = host_lanes(plan(HOST), HOST)
    read = {item.source for lane in (lanes.quick, lanes.slow, lanes.last) for item in lane}
    assert set(all_sources(EVERYONE, Scope.HOST)) == read
    entered = {item.source for item in container_items(plan(HOST), HOST, CONTAINER)}
    assert set(all_sources(EVERYONE, Scope.CONTAINER)) == entered


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ((pair_agent(),), ["host.level", "container.gate", "pair.gate"]),
        ((level_agent(),), ["host.level"]),
        ((), []),
    ],
)
def test_pairs_bring_what_they_need(chosen: tuple[AnyAgent, ...], expected: list[str]) -> None:
    """A pair agent without its facts could only say unknown."""
    assert ids(with_needed(chosen, EVERYONE)) == expected


def test_wanted_facts_come_too() -> None:
    """A fact that a pair can do without is collected all the same."""
    pair = pair_agent(needs=(), wants=(level_agent().fact,))
    assert ids(with_needed((pair,), (level_agent(), gate_agent(), pair))) == ["host.level", "pair.gate"]


def test_a_repair_judges_pairs_again() -> None:
    """Who looks at a host again looks at the pairs that rest on it."""
    assert ids(with_pairs((level_agent(),), EVERYONE)) == ["host.level", "pair.gate"]


def test_host_of_a_container_gives_only_what_pairs_need() -> None:
    """`pve1/7` alone does not judge the rest of pve1."""
    agents = (*EVERYONE, level_agent("host.unrelated", fact=type("Other", (level_agent().fact,), {})))
    for_container = replace(HOST, host_too=False)
    assert ids(plan(HOST, agents=agents).host_readers(for_container)) == ["host.level"]
    assert ids(plan(HOST, agents=agents).host_readers(HOST)) == ["host.level", "host.unrelated"]


def test_nobody_is_sent_into_a_frozen_container() -> None:
    """Readings from outside go on."""
    outside, _, inside = container_items(plan(HOST), HOST, CONTAINER)
    cold = replace(CONTAINER, state=State.FROZEN)
    problem = frozen(cold, inside)
    assert problem is not None
    assert problem.kind is ProblemKind.NOT_ENTERED
    assert frozen(cold, outside) is None
    assert frozen(CONTAINER, inside) is None
