"""Agents of other distributions: a small one, built and installed here, and broken ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gapline.orchestrator.cli.registry import all_agents
from gapline.orchestrator.model.errors import ConfigError
from tests.cli.command_line import CommandLine
from tests.ssh.sshd import Sshd


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
    assert "ostype.foreign" in gapline("explain", "ostype.foreign").out
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
