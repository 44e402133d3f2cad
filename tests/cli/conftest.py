"""What these tests share: real servers, a place to run in, an ordinary user, third parties' agents."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.ssh.sshd import MakeSshd, Sshd, make_sshd, sshd, sshd_keys

__all__ = ["make_sshd", "sshd", "sshd_keys"]

GAUGE = Path(__file__).parent / "gauge"


@pytest.fixture
def gapline(tmp_path: Path) -> CommandLine:
    """A place to run commands in."""
    return CommandLine(tmp_path / "place")


@pytest.fixture
def ordinary_user(tmp_path: Path) -> Iterator[str]:
    """A user without any right, removed with the test."""
    if os.geteuid() != 0 or shutil.which("useradd") is None or shutil.which("sudo") is None:
        pytest.skip("needs root, useradd and sudo")
    name = f"gapline-{secrets.token_hex(4)}"
    home = tmp_path / "ordinary"
    home.mkdir(mode=0o755)
    subprocess.run(["useradd", "-M", "-d", str(home), "-s", "/bin/sh", "-p", "*", name], check=True)
    yield name
    subprocess.run(["userdel", name], check=True)


@pytest.fixture(scope="session")
def gauge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The distribution of a third party, built and installed into a directory of its own; no network is used."""
    built = tmp_path_factory.mktemp("gauge")
    source = built / "source"
    shutil.copytree(GAUGE, source)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", built], cwd=source, check=True)
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:  # what an installer does with a wheel of pure Python
        archive.extractall(built / "site")
    return built / "site"


@dataclass
class Marked:
    """A server whose sessions all carry a mark in their environment, by which what they leave behind is found."""

    server: Sshd
    mark: str

    def left(self) -> dict[int, bytes]:
        """The processes that carry it, with their command lines."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if self.mark.encode() in path.read_bytes():
                    found[int(path.parent.name)] = (path.parent / "cmdline").read_bytes()
        return found


@pytest.fixture
def marked(make_sshd: MakeSshd) -> Iterator[Marked]:
    """Such a server."""
    mark = f"GAPLINE_TEST={secrets.token_hex(8)}"
    it = Marked(make_sshd(f"SetEnv {mark}"), mark)
    yield it
    for process in it.left():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
