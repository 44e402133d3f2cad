"""What agents tell for comparing hosts and GPUs."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from gapline.orchestrator.model.agent import Agent, AnyAgent
from gapline.orchestrator.model.trait import Trait
from gapline.orchestrator.odd_one_out import AGENT as ODD_ONE_OUT
from gapline.orchestrator.playbook.select import compared
from tests.agents.case import Case, all_cases, outcome
from tests.agents.known import DOCS, all_agents

COMPARED = [pytest.param(agent, id=agent.id) for agent in compared(all_agents())]
NUMBERS = re.compile(r"[0-9]")


def cases_of(agent: AnyAgent) -> list[Case]:
    """The agent's cases."""
    return [case for case in all_cases() if case.agent == agent.id]


def traits(agent: AnyAgent, case: Case) -> tuple[Trait, ...]:
    """What the case tells."""
    fact = outcome(case).fact
    return agent.traits(fact) if isinstance(agent, Agent) and fact is not None else ()


@pytest.mark.parametrize("agent", COMPARED)
def test_traits_say_something_and_cite_it(agent: AnyAgent) -> None:
    """Each subject has one value of a name, and the line that it was read from."""
    told = [trait for case in cases_of(agent) for trait in traits(agent, case)]
    assert told
    for case in cases_of(agent):
        subjects = Counter((one.subject, one.name) for one in traits(agent, case))
        assert not [subject for subject, count in subjects.items() if count > 1], case.name
    for one in told:
        assert one.name
        assert not NUMBERS.search(one.name), "a name stays the same on every host"
        assert one.value.strip()
        assert one.evidence.text.strip()
        assert re.fullmatch(r"|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", one.subject)


@pytest.mark.parametrize("agent", COMPARED)
def test_page_names_what_is_compared(agent: AnyAgent) -> None:
    """The page of the comparison lists every trait of every agent."""
    page = (DOCS / "fleet.odd_one_out.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith(f"| `{agent.id}` |"))
    names = {trait.name for case in cases_of(agent) for trait in traits(agent, case)}
    assert [name for name in names if name not in row] == []
    assert [code.code for code in ODD_ONE_OUT.codes if f"`{code.code}`" not in page] == []


def values(agent_id: str, case_name: str) -> dict[str, set[str]]:
    """By name the values of all subjects of a case."""
    (case,) = (case for case in all_cases() if (case.agent, case.name) == (agent_id, case_name))
    (agent,) = (agent for agent in all_agents() if agent.id == agent_id)
    found: dict[str, set[str]] = {}
    for trait in traits(agent, case):
        found.setdefault(trait.name, set()).add(trait.value)
    return found


def test_values_are_those_of_the_machine() -> None:
    """Spot checks against what the cases' files say."""
    assert values("host.kernel", "example-pve-a") == {"kernel release": {"6.8.12-9-pve"}}
    frequency = values("host.cpu_frequency", "old-driver-and-schedutil")
    assert frequency["CPU frequency driver"] == {"acpi-cpufreq"}
    assert frequency["CPU frequency governor"] == {"schedutil"}
    assert values("host.pcie", "half-the-lanes")["link width"] == {"x8", "x16"}
    assert values("host.pcie", "one-small-read-request")["MaxReadReq"] == {"128 bytes", "4096 bytes"}
    assert values("host.gpu_state", "power-limit-lowered-on-two")["power limit"] == {"450.00 W", "600.00 W"}
    assert values("host.gpu_state", "example-pve-a")["VBIOS"] == {"98.02.6A.00.07"}


def test_firmware_of_a_guest_is_not_compared() -> None:
    """It is its hypervisor's."""
    assert values("host.virtualization", "guest-of-kvm") == {}
    assert set(values("host.virtualization", "example-pve-a")) == {"BIOS version"}
