"""Gapline as a person on a laptop runs it: its real command line against a lab's sshd, with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapline.orchestrator.model.run import OutcomeEntry, ReportedFinding, Run

_FLEET = """\
version: 1
hosts:
  lab:
    address: 127.0.0.1
    port: {port}
    user: root
    identity: {identity}
    known_hosts: {known_hosts}
"""
_FINISHED = {0, 1, 3}  # clean, findings, something unseen: the audit itself went through


@dataclass(frozen=True, slots=True)
class Door:
    """How the lab's host is reached; `prefix` puts a command where that address means the lab."""

    port: int
    identity: Path
    known_hosts: Path
    prefix: tuple[str, ...] = ()

    def fleet(self) -> str:
        """The fleet file that names it."""
        return _FLEET.format(port=self.port, identity=self.identity, known_hosts=self.known_hosts)


@dataclass(frozen=True, slots=True)
class Auditor:
    """One laptop: a folder with the fleet file, the runs and Gapline's own state."""

    door: Door
    folder: Path

    @property
    def out(self) -> Path:
        """Where the run lies."""
        return self.folder / "run"

    def audit(self, *arguments: str) -> Run:
        """`gapline audit`, and what it wrote."""
        fleet = self.folder / "fleet.yaml"
        fleet.write_text(self.door.fleet())
        self.gapline("audit", *arguments, "--inventory", str(fleet), "--out", str(self.out))
        assert (self.out / "report.html").stat().st_size > 0
        return self.run()

    def rerun(self, agent: str, target: str) -> list[dict[str, Any]]:
        """`gapline rerun`: what became of each finding."""
        printed = self.gapline("rerun", agent, "--target", target, "--run", str(self.out), "--json").stdout
        changed: list[dict[str, Any]] = json.loads(printed)["changes"]
        return changed

    def run(self) -> Run:
        """The run as it lies there now."""
        return Run.model_validate_json((self.out / "run.json").read_bytes())

    def gapline(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command, in the lab's reach and with a home of its own."""
        home = {"HOME": str(self.folder)} | {
            f"XDG_{kind}_HOME": str(self.folder / kind.lower()) for kind in ("STATE", "DATA", "CACHE", "CONFIG")
        }
        done = subprocess.run(
            (*self.door.prefix, sys.executable, "-m", "gapline", *arguments),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            env=os.environ | home,
        )
        assert done.returncode in _FINISHED, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done


def findings(run: Run, target: str, code: str) -> list[ReportedFinding]:
    """All findings of that code on that target."""
    return [f for entry in run.outcomes if entry.target == target for f in entry.findings if f.code == code]


def outcome(run: Run, target: str, agent: str) -> OutcomeEntry:
    """What that agent said about that target."""
    return next(entry for entry in run.outcomes if (entry.target, entry.agent) == (target, agent))
