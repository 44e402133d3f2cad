"""Agents of other distributions: a small one, built and installed here, and broken ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gapline.orchestrator.cli.registry import all_agents
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Found
from gapline.orchestrator.playbook.check import check
from gapline.orchestrator.playbook.load import load
from gapline.orchestrator.playbook.select import select_agents
from tests.cli.command_line import CommandLine
from tests.cli.conftest import GAUGE
from tests.ssh.sshd import Sshd

ROOT = Path(__file__).parents[2]


def distribution(site: Path, name: str, entry_point: str, module: str) -> None:
    """What is left of a distribution once it is installed: its module and its metadata."""
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[gapline.agents]\nit = {entry_point}\n")
    (site / f"{name}.py").write_text(module)


@pytest.mark.ssh
def test_an_installed_agent_is_one_of_ours(gapline: CommandLine, gauge: Path, sshd: Sshd) -> None:
    """Listed, explained, planned, run, and named in the run; a playbook decides whether it runs by itself."""
    gapline.more["PYTHONPATH"] = str(gauge)
    about = gapline("agents", "host.ostype").out
    assert "file:/proc/sys/kernel/ostype" in about
    assert "ostype.foreign" in about
    gapline.fleet(sshd.host())
    playbook = gapline.here / "mine.yaml"
    playbook.write_text("version: 1\nname: mine\nextends: full\nagents:\n  host.ostype: {level: quick}\n")
    done = gapline("audit", "--playbook", playbook, "--json", "--fail-on", "none")
    (entry,) = [one for one in done.json["outcomes"] if one["agent"] == "host.ostype"]
    assert (entry["status"], entry["fact"]) == ("passed", {"name": "Linux"})
    plain = gapline("plan", "--json").json
    assert "host.ostype" not in plain["agents"]


def test_two_agents_with_one_id(gapline: CommandLine, tmp_path: Path) -> None:
    """Both are named, and where they come from."""
    module = "from gapline.agents.host.pcie import AGENT\n"
    distribution(tmp_path / "site", "copycat", "copycat:AGENT", module)
    gapline.more["PYTHONPATH"] = str(tmp_path / "site")
    done = gapline("agents")
    assert (done.code, done.out) == (2, "")
    assert "two agents are called host.pcie: gapline.agents.host.pcie and copycat:AGENT (copycat)" in done.err
    assert "hint: " in done.err


@pytest.mark.parametrize(
    ("entry_point", "module", "said"),
    [
        ("broken:AGENT", "import no_such_module\n", "ModuleNotFoundError"),
        ("broken:AGENT", "AGENT = 1 / 0\n", "ZeroDivisionError"),
        ("broken:AGENTS", "AGENT = None\n", "AttributeError"),
        ("broken:AGENT", "AGENT = 'host.mine'\n", "is no Agent, it is a str"),
    ],
    ids=["import", "bug", "name", "type"],
)
def test_broken_entry_points(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, entry_point: str, module: str, said: str
) -> None:
    """A clear error that names the entry point and what to fix or uninstall."""
    distribution(tmp_path, "broken", entry_point, module)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    with pytest.raises(ConfigError) as caught:
        all_agents.__wrapped__()
    assert said in str(caught.value)
    assert entry_point in str(caught.value)
    assert "uninstall broken" in caught.value.hint
    sys.modules.pop("broken", None)


_BUGGY = """
from dataclasses import replace
from gapline.agents.host.numa_balancing import AGENT as OTHER

def judge(fact, limits):
    return {}["gpu 3"]

AGENT = replace(OTHER, id="host.buggy", judge=judge, limits=())
"""


def test_a_bug_of_an_agent_is_exit_4_and_the_others_answer(gapline: CommandLine, tmp_path: Path) -> None:
    """It is said whose bug it is, in the answer, by the doctor and in the log, and the run is written."""
    distribution(tmp_path / "site", "buggy", "buggy:AGENT", _BUGGY)
    gapline.more["PYTHONPATH"] = str(tmp_path / "site")
    done = gapline("audit", "local", "--agent", "host.buggy", "--agent", "host.numa_balancing", "--out", "out")
    assert done.code == 4
    assert "agent host.buggy failed: KeyError: 'gpu 3'" in done.out
    by_agent = {one.agent: one.status.value for one in gapline.run().outcomes}
    assert by_agent.pop("host.buggy") == "unknown"
    assert set(by_agent) == {"host.numa_balancing"}
    assert '"level": "error"' in (gapline.here / "out" / "log.jsonl").read_text()
    assert gapline("doctor", "local", "--agent", "host.buggy").code == 4


def _blocks(language: str) -> list[str]:
    """The examples of docs/extending.md in one language."""
    parts = (ROOT / "docs" / "extending.md").read_text().split(f"```{language}\n")[1:]
    return [part.partition("```")[0] for part in parts]


def test_documented_example_is_the_installed_one() -> None:
    """Every line of docs/extending.md's agent stands in the module that is built and run here; its trial passes."""
    agent, trial = _blocks("python")
    module = (GAUGE / "gapline_gauge" / "ostype.py").read_text().splitlines()
    assert [line for line in agent.splitlines() if line not in module] == []
    (entry,) = [block for block in _blocks("toml") if "entry-points" in block]
    project = (GAUGE / "pyproject.toml").read_text()
    assert [line for line in entry.splitlines() if line not in project and "dependencies" not in line] == []
    names: dict[str, object] = {"Capture": Capture, "Captures": Captures, "Found": Found, "Limits": Limits}
    exec("\n".join(module), names)  # noqa: S102 - our own example, as a reader would paste it
    exec(trial, names)  # noqa: S102 - as above


def test_documented_playbook_runs_the_agent(gauge: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The playbook of docs/extending.md is one."""
    (block,) = _blocks("yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(block)
    monkeypatch.syspath_prepend(str(gauge))
    everyone = all_agents.__wrapped__()
    check(load(str(path)), everyone)
    assert "host.ostype" in {agent.id for agent in select_agents(load(str(path)), everyone, ())}
