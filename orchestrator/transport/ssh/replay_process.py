"""Starts the replay server as a process of its own and ends it again."""

from __future__ import annotations

import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.model.errors import TransportError
from gapline.orchestrator.transport.ssh import replay_server

_NAME = "replay server"
_START = 30.0  # seconds until it must listen; it takes less than one
_STOP = 5.0  # seconds to end by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayServer:
    """A running server. `folder` holds its keys and goes with it."""

    port: int
    pid: int
    folder: Path

    def host(self, name: str) -> Host:
        """The inventory entry of a recorded host: its own keys, and nothing that the user has set for this machine."""
        return Host(
            name=name,
            address=replay_server.LOOPBACK,
            user=name,
            port=self.port,
            identity=(self.folder / replay_server.IDENTITY,),
            known_hosts=self.folder / replay_server.KNOWN_HOSTS,
            jump="none",
        )


@contextmanager
def serving(*snapshots: Path, copies: int = 0) -> Iterator[ReplayServer]:
    """A server that answers from these snapshots, later ones over earlier ones, until the block ends or we are killed.

    Raises:
        TransportError: it did not start, because a snapshot is damaged or nothing may listen on loopback.
    """
    with tempfile.TemporaryDirectory(prefix="gapline-replay-") as name:
        folder = Path(name)
        said = folder / "stderr"
        process = _started(folder, said, snapshots, copies)
        try:
            yield ReplayServer(port=_port(process, said), pid=process.pid, folder=folder)
        finally:
            _stop(process)


def _started(folder: Path, said: Path, snapshots: tuple[Path, ...], copies: int) -> subprocess.Popen[bytes]:
    paths = [str(path.resolve()) for path in snapshots]
    # -P: a module of the directory we were started in must not stand in for one of ours.
    command = [sys.executable, "-P", "-m", replay_server.__name__, str(folder), *paths, "--copies", str(copies)]
    with said.open("wb") as errors:
        try:
            return subprocess.Popen(  # noqa: S603 - our own module, with paths as arguments
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for us; the server is told by the end of its input
            )
        except OSError as error:
            raise TransportError(_NAME, f"did not start: {error}") from error


def _port(process: subprocess.Popen[bytes], said: Path) -> int:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    line = process.stdout.readline() if _readable(process.stdout) else b""
    if line.strip().isdigit():
        return int(line)
    reason = said.read_text(errors="backslashreplace").strip().rpartition("\n")[2] or f"no answer within {_START:.0f} s"
    raise TransportError(_NAME, f"did not start: {reason}", hint="It needs to listen on 127.0.0.1, on any port.")


def _readable(stream: IO[bytes]) -> bool:
    return bool(select.select([stream], [], [], _START)[0])


def _stop(process: subprocess.Popen[bytes]) -> None:
    with process:  # closes our ends of its pipes and waits
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        process.stdin.close()
        try:
            process.wait(_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
