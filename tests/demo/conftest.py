"""A home without keys and settings, a place for temporary files that can be looked at, and audits of changed fleets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gapline.orchestrator.cli.demonstrating import audit_fleet
from gapline.orchestrator.model.run import Run
from gapline.orchestrator.run_folder import RunFolder, make
from tests.demo.fleet import Fleet

Audit = Callable[[Fleet], Run]


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No ~/.ssh, no agent, no state of the developer's."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GAPLINE_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture(scope="session")
def morning(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The audit of all three hosts that morning, over real SSH."""
    folder = make(tmp_path_factory.mktemp("morning") / "run")
    audit_fleet(folder)
    return folder


@pytest.fixture(scope="session")
def run(morning: RunFolder) -> Run:
    """What it found, as it was written."""
    return morning.read()


@pytest.fixture(scope="session")
def report(morning: RunFolder) -> Path:
    """Its report."""
    return morning.report


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A copy of pve-b."""
    return Fleet(tmp_path / "fleet")


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """Audits a fleet over real SSH."""
    return lambda fleet: audit_fleet(make(tmp_path / "run"), fleet.path)
