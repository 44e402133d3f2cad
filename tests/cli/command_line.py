"""Gapline as a person starts it: a process of its own, with a home, a state directory and a working directory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gapline.orchestrator.inventory.host import Become, Host
from gapline.orchestrator.model.run import Run
from gapline.orchestrator.run_folder import RunFolder

GAPLINE = (sys.executable, "-m", "gapline")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which holds JSON and nothing else."""
        return json.loads(self.out)


@dataclass
class CommandLine:
    """Where commands are run; `here` is the working directory."""

    root: Path
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for directory in (self.home, self.here, self.home / ".ssh"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def home(self) -> Path:
        """A home without keys and settings."""
        return self.root / "home"

    @property
    def here(self) -> Path:
        """The working directory."""
        return self.root / "here"

    @property
    def state(self) -> Path:
        """Where runs go by default."""
        return self.root / "state"

    @property
    def environment(self) -> dict[str, str]:
        """What commands see."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
        return {**kept, "HOME": str(self.home), "GAPLINE_STATE": str(self.state), **self.more}

    def __call__(self, *words: str | Path, given: str | None = None, **environment: str) -> Done:
        """Run to its end."""
        done = subprocess.run(
            [*GAPLINE, *map(str, words)],
            cwd=self.here,
            env=self.environment | environment,
            input=given.encode() if given is not None else b"",
            capture_output=True,
            check=False,
            timeout=120,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(
        self,
        *words: str | Path,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        start_new_session: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start and go on. A shell's background jobs ignore SIGINT, and so would whatever they start."""
        return subprocess.Popen(
            [*GAPLINE, *map(str, words)],
            cwd=self.here,
            env=self.environment,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=start_new_session,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # one thread starts it
        )

    def run(self, name: str = "out") -> Run:
        """The run in a directory below the working directory."""
        return RunFolder(self.here / name).read()

    def fleet(self, *hosts: Host, name: str = "fleet.yaml", extra: str = "") -> Path:
        """Write these hosts into a fleet file of the working directory."""
        path = self.here / name
        body = "".join(_entry(host) for host in hosts)
        path.write_text(f"version: 1\nhosts:\n{body}{extra}")
        return path

    def files(self) -> dict[str, tuple[int, int]]:
        """Every file and directory below the root, with size and time of change."""
        return {
            str(path.relative_to(self.root)): (path.lstat().st_size, path.lstat().st_mtime_ns)
            for path in sorted(self.root.rglob("*"))
        }


def keys_read(run: Run, folder: Path, target: str) -> set[str]:
    """The sources of a target in the newest snapshot of a run."""
    captures = json.loads((folder / run.run.snapshots[-1] / target / "captures.json").read_text())
    return {entry["source"] for entry in captures}


def answers(run: Run, targets: Iterable[str] = ()) -> Mapping[tuple[str, str], tuple[str, str, tuple[str, ...]]]:
    """What every agent said about every target, without times."""
    wanted = set(targets) or {target.id for target in run.targets}
    return {
        (one.target, one.agent): (one.status.value, one.reason, tuple(f.fingerprint for f in one.findings))
        for one in run.outcomes
        if one.target in wanted
    }


def _entry(host: Host) -> str:
    settings = {
        "address": host.address,
        "user": host.user,
        "port": host.port,
        "identity": [str(path) for path in host.identity] or None,
        "known_hosts": str(host.known_hosts) if host.known_hosts else None,
        "become": host.become.value if host.become is not Become.NONE else None,
        "jump": host.jump,
    }
    shown = ", ".join(f"{name}: {json.dumps(value)}" for name, value in settings.items() if value is not None)
    return f"  {host.name}: {{{shown}}}\n"
