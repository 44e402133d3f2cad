"""Sources as shells see them: valid, read-only, and answering on the machine that runs the tests."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from gapline.orchestrator.model.agent import Agent
from gapline.orchestrator.model.source import Script, Source
from tests.agents.known import all_agents

SOURCES: dict[str, Source] = {
    source.key: source for agent in all_agents() if isinstance(agent, Agent) for source in agent.sources.values()
}
SCRIPTS = [pytest.param(source, id=source.name) for source in SOURCES.values() if isinstance(source, Script)]
SHELLS = [pytest.param(("dash",), id="dash"), pytest.param(("bash",), id="bash")]
SHELLS += [pytest.param(("busybox", "ash"), id="busybox")]


def test_equal_keys_mean_equal_sources() -> None:
    """A key names one source in a snapshot, whoever asks for it."""
    for agent in all_agents():
        for source in agent.sources.values() if isinstance(agent, Agent) else ():
            assert SOURCES[source.key] == source


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_valid(script: Script, shell: tuple[str, ...]) -> None:
    """Every shell that a target may have parses it."""
    _installed(shell[0])
    assert _run(*shell, "-n", "-c", script.text).stderr == ""


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_passes_shellcheck(script: Script) -> None:
    """As POSIX sh, without a remark."""
    _installed("shellcheck")
    done = subprocess.run(
        ["shellcheck", "--shell=sh", "-"], input=script.text, capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_writes_nothing(script: Script) -> None:
    """No here-document (bash keeps them in files) and no output redirection but to a descriptor or /dev/null."""
    text = re.sub(r'\[ -c ("[^"]+") \] && : <>\1', "", script.text)  # opens a node that is there, and creates nothing
    assert "<<" not in text
    assert "<>" not in text, "creates what does not exist"
    text = re.sub(r"sed -E '[^']*'", "", text)  # tags of XML are no redirections
    assert re.findall(r"[0-9]?>(?!&|/dev/null|=)\S*", text) == []


def _installed(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
