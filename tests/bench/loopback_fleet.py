"""A hundred or more "hosts": one sshd in a network namespace of its own, answering on 127.0.x.y."""

from __future__ import annotations

import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gapline.orchestrator.inventory.host import Containers, Host

PORT = 2299
USER = "gapline-bench"
"""With a bare shell and no start-up files: what a login costs on a real host is not what is measured."""


@dataclass(frozen=True, slots=True)
class LoopbackFleet:
    """The running server's keys."""

    folder: Path

    @property
    def identity(self) -> Path:
        """The key it lets in."""
        return self.folder / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """Knows it on every address."""
        return self.folder / "known_hosts"

    def hosts(self, count: int) -> tuple[Host, ...]:
        """That many hosts, each with an address of its own."""
        return tuple(
            Host(
                name=f"h{number:04}",
                address=f"127.0.{number // 250 + 1}.{number % 250 + 1}",
                port=PORT,
                user=USER,
                identity=(self.identity,),
                known_hosts=self.known_hosts,
                containers=Containers.NONE,
            )
            for number in range(count)
        )


def in_own_network(arguments: list[str]) -> int:
    """Run this program again with nothing but a loopback device; its exit status."""
    up = 'ip link set lo up && exec "$@"'
    command = ("unshare", "--net", "sh", "-c", up, "sh", sys.executable, *arguments)
    return subprocess.run(command, check=False).returncode


@contextmanager
def loopback_fleet(folder: Path) -> Iterator[LoopbackFleet]:
    """Make the user and start the server; both are gone afterwards."""
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    if sshd is None:
        sys.exit("the fan-out needs sshd: apt-get install openssh-server")
    fleet = LoopbackFleet(folder)
    for key in (fleet.identity, folder / "host_key"):
        subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bench", "-f", key), check=True)
    fleet.known_hosts.write_text(f"[127.0.*]:{PORT} {(folder / 'host_key.pub').read_text()}")
    config = folder / "sshd_config"
    config.write_text(
        f"ListenAddress 0.0.0.0:{PORT}\nHostKey {folder}/host_key\nAuthorizedKeysFile {folder}/id_ed25519.pub\n"
        f"PidFile {folder}/pid\nStrictModes no\nUsePAM no\nUseDNS no\nPrintMotd no\nMaxStartups 1000:30:2000\n"
        "Subsystem sftp internal-sftp\n"
    )
    folder.chmod(0o711)
    Path("/run/sshd").mkdir(exist_ok=True)
    with _user(), subprocess.Popen((sshd, "-D", "-f", config, "-E", folder / "log")) as server:
        try:
            time.sleep(1)
            yield fleet
        finally:
            server.terminate()


@contextmanager
def _user() -> Iterator[None]:
    try:
        pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(
            ("useradd", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/dash", USER), check=True
        )
        subprocess.run(("usermod", "--password", "*", USER), check=True)  # "!" would mean locked
    try:
        yield
    finally:
        subprocess.run(("userdel", USER), check=False, capture_output=True)
