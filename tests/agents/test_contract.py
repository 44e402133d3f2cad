"""What every agent owes: documentation, limits with an origin, remedies that can be verified, and cases."""

from __future__ import annotations

import re
import subprocess
from collections import Counter

import pytest

from gapline.orchestrator.model.agent import Agent, AnyAgent, PairAgent
from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.outcome import Found, Status, Unknown, status
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.playbook.check import check
from tests.agents.case import Case, all_cases, outcome
from tests.agents.known import DOCS, HERE, all_agents, full_playbook

AGENTS = [pytest.param(agent, id=agent.id) for agent in all_agents()]
CASES = all_cases()
_SIDE = {".err", ".exit", ".problem"}


def cases_of(agent: AnyAgent) -> list[Case]:
    """The agent's cases."""
    return [case for case in CASES if case.agent == agent.id]


def found(agent: AnyAgent) -> list[Finding]:
    """Everything that its cases find."""
    outcomes = (outcome(case) for case in cases_of(agent))
    return [finding for one in outcomes if isinstance(one, Found) for finding in one.findings]


def test_ids_are_unique() -> None:
    """No two agents share an id, no two reading agents a fact."""
    ids = Counter(agent.id for agent in all_agents())
    facts = Counter(agent.fact for agent in all_agents() if isinstance(agent, Agent))
    assert not [id_ for id_, count in ids.items() if count > 1]
    assert not [fact for fact, count in facts.items() if count > 1]


def test_playbook_knows_all_agents_and_their_limits() -> None:
    """playbooks/full.yaml names exactly the agents there are, with exactly the limits they declare."""
    check(full_playbook(), all_agents())
    assert sorted(full_playbook().entries) == sorted(agent.id for agent in all_agents())


def test_codes_belong_to_one_agent() -> None:
    """A finding code says who found it."""
    owners = Counter(code.code for agent in all_agents() for code in agent.codes)
    assert not [code for code, count in owners.items() if count > 1]


@pytest.mark.parametrize("agent", AGENTS)
def test_shape(agent: AnyAgent) -> None:
    """The id is scope and concept, codes are dotted, and everything that is declared says something."""
    assert re.fullmatch(rf"{agent.scope.value}\.[a-z0-9_]+", agent.id)
    for code in agent.codes:
        assert re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", code.code)
        assert code.title
        assert code.meaning
    for name in agent.sources if isinstance(agent, Agent) else ():
        assert re.fullmatch(r"[a-z0-9_]+", name), "source names are file names of cases"


@pytest.mark.parametrize("agent", AGENTS)
def test_limits_have_origins(agent: AnyAgent) -> None:
    """No number without where it comes from."""
    assert [name for name, limit in full_playbook().limits(agent.id).items() if not limit.origin] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_documentation(agent: AnyAgent) -> None:
    """docs/agents has a page that names every code, limit and source."""
    page = (DOCS / f"{agent.id}.md").read_text()
    named = [*(code.code for code in agent.codes), *agent.limits]
    assert [name for name in named if f"`{name}`" not in page] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_kinds_of_cases(agent: AnyAgent) -> None:
    """At least one that passes, one that finds, one with garbage, one twin of a finding that must stay silent."""
    cases = cases_of(agent)
    statuses = {status(outcome(case)) for case in cases}
    assert {Status.PASSED, Status.FOUND} <= statuses
    assert [case for case in cases if case.name.startswith("garbage")]
    assert [case for case in cases if case.name.startswith("twin-")]


@pytest.mark.parametrize("agent", AGENTS)
def test_every_code_is_shown_by_a_case(agent: AnyAgent) -> None:
    """No code without a case, no finding without a documented code."""
    assert {finding.code for finding in found(agent)} == {code.code for code in agent.codes}


@pytest.mark.parametrize("agent", AGENTS)
def test_findings_are_complete(agent: AnyAgent) -> None:
    """Every finding cites evidence, and its remedy says everything and names an agent that exists."""
    ids = {agent.id for agent in all_agents()}
    for finding in found(agent):
        assert finding.evidence, finding.code
        assert finding.remedy.verify_agent in ids
        told = finding.remedy.model_dump(exclude={"diff", "commands"})
        assert [name for name, text in told.items() if not text] == [], finding.code


@pytest.mark.parametrize("agent", AGENTS)
def test_commands_of_remedies_are_shell(agent: AnyAgent) -> None:
    """They go into a script as they stand: one line each, nothing to fill in, and a shell can read them."""
    for command in {command for finding in found(agent) for command in finding.remedy.commands}:
        assert "\n" not in command
        assert not re.search(r"\b(?:ID|CTID|PID|N)\b", command), command
        subprocess.run(["sh", "-n"], input=command, check=True, text=True, capture_output=True)


@pytest.mark.parametrize("agent", AGENTS)
def test_garbage_is_unknown(agent: AnyAgent) -> None:
    """What a parser does not know is unknown with the line, never a finding and never fine."""
    for case in cases_of(agent):
        if case.name.startswith("garbage"):
            got = outcome(case)
            assert isinstance(got, Unknown), case.name
            assert got.problem.kind is ProblemKind.UNREADABLE, case.name


@pytest.mark.parametrize("agent", AGENTS)
def test_no_stray_files_in_cases(agent: AnyAgent) -> None:
    """A misspelt file would silently count as "absent on that machine"."""
    names = set(agent.sources) if isinstance(agent, Agent) else _needed(agent)
    for case in cases_of(agent):
        stems = {path.stem if path.suffix in _SIDE else path.name for path in case.folder.iterdir()}
        assert stems - names - {"expect.json", "binding.json", "README.md"} == set(), case.name


def _needed(agent: PairAgent) -> set[str]:
    kinds = {*agent.needs, *agent.wants}
    return {one.id for one in all_agents() if isinstance(one, Agent) and one.fact in kinds}


def test_every_folder_belongs_to_an_agent() -> None:
    """No case of an agent that does not exist."""
    folders = {path.name for path in HERE.iterdir() if (path / "cases").is_dir()}
    assert folders <= {agent.id for agent in all_agents()}
