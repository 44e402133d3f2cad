"""What the SSH tests share: real servers, a home without the developer's own keys, and a dialer that is closed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gapline.orchestrator.transport.ssh.dialer import Dialer
from gapline.orchestrator.transport.ssh.prompts import Prompts
from gapline.orchestrator.transport.ssh.settings import SshSettings
from tests.ssh.sshd import make_sshd, sshd, sshd_keys

__all__ = ["make_sshd", "sshd", "sshd_keys"]

MakeDialer = Callable[..., Dialer]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home of our own: no keys, no agent, no configuration."""
    directory = tmp_path / "home"
    (directory / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(directory))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return directory


@pytest.fixture
async def make_dialer(home: Path) -> AsyncIterator[MakeDialer]:
    """Makes dialers that read the test's own ~/.ssh/config; they are closed with the test."""
    made: list[Dialer] = []

    def make(prompts: Prompts | None = None, **settings: int) -> Dialer:
        dialer = Dialer(SshSettings(config=(home / ".ssh" / "config",), **settings), prompts)
        made.append(dialer)
        return dialer

    yield make
    for dialer in made:
        await dialer.close()


@pytest.fixture
def dialer(make_dialer: MakeDialer) -> Dialer:
    """A dialer with nobody at a terminal."""
    return make_dialer()
