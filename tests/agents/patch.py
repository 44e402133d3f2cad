"""Applies the diff that a remedy prints, with the real `patch`, to what a case holds of that file."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gapline.orchestrator.model.agent import Agent, PairAgent, Scope
from tests.agents.case import Case
from tests.agents.known import agent_called, agent_with
from tests.agents.recorded import capture


def apply_diff(case: Case, diff: str) -> Mapping[str, bytes]:
    """The file that the diff names, with its new content."""
    path = diff.split("\n", 1)[0].removeprefix("--- ").split("\t")[0]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "file"
        target.write_bytes(_content(case, path))
        done = subprocess.run(
            ["patch", "--batch", "--fuzz=0", str(target)], input=diff.encode(), capture_output=True, check=False
        )
        assert done.returncode == 0, f"{done.stdout.decode()}{done.stderr.decode()}\n{diff}"
        return {path: target.read_bytes()}


def _content(case: Case, path: str) -> bytes:
    for folder, agent in _readers(case):
        for name, source in agent.sources.items():
            one = capture(folder, name, source, "", None if agent.scope is Scope.HOST else case.binding())
            if one.shown.split()[-1] == path:
                return one.out
    raise AssertionError(f"no source of {case.agent} reads {path}")


def _readers(case: Case) -> Iterator[tuple[Path, Agent[Any]]]:
    agent = agent_called(case.agent)
    if isinstance(agent, PairAgent):
        yield from ((case.folder / one.id, one) for one in map(agent_with, (*agent.needs, *agent.wants)))
    else:
        yield case.folder, agent
