"""Real OpenSSH servers on loopback, each with its own keys, configuration and directory.

Import the fixtures `make_sshd`, `sshd` and `sshd_keys` in a conftest to use them.

Every server is a process of its own, started for one test or module and ended by its process id.
"""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from gapline.orchestrator.inventory.host import Host

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
_SETTINGS = """\
ListenAddress {address}:{port}
PidFile {directory}/pid
HostKey {directory}/host_ed25519
AuthorizedKeysFile {directory}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PubkeyAuthentication yes
UseDNS no
PermitRootLogin yes
PrintMotd no
AllowTcpForwarding yes
LogLevel VERBOSE
SetEnv {quiet}
"""
QUIET = "SHLVL=9"
"""For `SetEnv`: bash runs ~/.bashrc for a command by ssh only when it is the outermost shell. What the account that
runs the tests has in there can take seconds, and is not under test."""


@dataclass
class Sshd:
    """One running server, and everything a client needs to be let in."""

    directory: Path
    address: str
    port: int
    identity: Path  # a private key that it lets in
    user: str = field(default_factory=getpass.getuser)
    process: subprocess.Popen[bytes] | None = None

    @property
    def known_hosts(self) -> Path:
        """A file that knows exactly this server."""
        return self.directory / "known_hosts"

    @property
    def host_key(self) -> Path:
        """Its private host key."""
        return self.directory / "host_ed25519"

    @property
    def listed(self) -> str:
        """Its name in known_hosts."""
        return f"[{self.address}]:{self.port}"

    @property
    def log(self) -> str:
        """What it has logged."""
        return (self.directory / "log").read_text(errors="replace")

    def host(self, name: str = "pve1", **changes: Any) -> Host:
        """An inventory entry for it, with the right key and known_hosts unless they are changed."""
        entry = Host(
            name=name,
            address=self.address,
            port=self.port,
            identity=(self.identity,),
            known_hosts=self.known_hosts,
            connect_timeout=20.0,
        )
        return replace(entry, **changes)

    def know(self, *names: str) -> None:
        """Rewrite `known_hosts` with the current host key, for its own name or the names given."""
        key = public(self.host_key)
        lines = [f"{name} {key}" for name in names or (self.listed,)]
        self.known_hosts.write_text("\n".join(lines) + "\n")

    def start(self, settings: str = "") -> None:
        """Start it and wait until it listens. Lines in `settings` come first, so they win."""
        assert SSHD is not None
        config = self.directory / "sshd_config"
        text = _SETTINGS.format(address=self.address, port=self.port, directory=self.directory, quiet=QUIET)
        config.write_text(f"{settings}\n{text}")
        log = (self.directory / "log").open("ab")
        with log:
            self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL, stderr=log)
        self._await_listening()

    def stop(self) -> None:
        """End the listener and the connections it has forked, by their ids."""
        if self.process is None:
            return
        children = self.children()
        self.process.terminate()
        self.process.wait()
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process = None

    def children(self) -> list[int]:
        """The processes of its connections: whatever descends from the listener."""
        assert self.process is not None
        return descendants(self.process.pid)

    def _await_listening(self) -> None:
        assert self.process is not None
        address = "127.0.0.1" if self.address == "0.0.0.0" else self.address  # noqa: S104 - compared, not bound
        for _ in range(500):
            if self.process.poll() is not None:
                pytest.fail(f"sshd did not start: {self.log}")
            with socket.socket() as probe:
                if probe.connect_ex((address, self.port)) == 0:
                    return
            time.sleep(0.01)
        pytest.fail(f"sshd does not listen: {self.log}")


def descendants(root: int) -> list[int]:
    """The ids of all processes below one, nearest first."""
    found = [root]
    for parent in found:
        children = Path(f"/proc/{parent}/task/{parent}/children")
        if children.exists():
            found.extend(int(child) for child in children.read_text().split())
    return found[1:]


def keygen(path: Path, *, kind: str = "ed25519", passphrase: str = "", options: tuple[str, ...] = ()) -> Path:
    """Make a key pair with ssh-keygen; the private key's path."""
    command = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", str(path), *options]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path


def public(private: Path) -> str:
    """Type and base64 of the public half."""
    return " ".join(Path(f"{private}.pub").read_text().split()[:2])


def free_port(address: str = "127.0.0.1") -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


MakeSshd = Callable[..., Sshd]


@pytest.fixture(scope="session")
def sshd_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one client key, made once."""
    directory = tmp_path_factory.mktemp("keys")
    keygen(directory / "client")
    return directory


@pytest.fixture
def make_sshd(tmp_path: Path, sshd_keys: Path) -> Iterator[MakeSshd]:
    """Starts servers: `make_sshd(settings="MaxSessions 2", address="127.0.0.1")`; they end with the test."""
    if SSHD is None:
        pytest.skip("needs OpenSSH's sshd (Debian: openssh-server)")
    if os.geteuid() == 0:
        _make_separation_directory()
    started: list[Sshd] = []

    def make(settings: str = "", *, address: str = "127.0.0.1", authorized: str | None = None) -> Sshd:
        directory = tmp_path / f"sshd{len(started)}"
        directory.mkdir()
        server = Sshd(directory, address, free_port(address), sshd_keys / "client")
        keygen(server.host_key)
        (directory / "authorized_keys").write_text((authorized or public(server.identity)) + "\n")
        server.know()
        server.start(settings)
        started.append(server)
        return server

    yield make
    for server in started:
        server.stop()


@pytest.fixture
def sshd(make_sshd: MakeSshd) -> Sshd:
    """One server with default limits."""
    return make_sshd()


def _make_separation_directory() -> None:
    """As root, sshd insists on this directory (sshd(8)); the service would make it."""
    directory = Path("/run/sshd")
    if not directory.exists():
        directory.mkdir(mode=0o755)
    assert pwd.getpwuid(directory.stat().st_uid).pw_name == "root"
