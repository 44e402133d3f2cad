"""An SSH server on loopback that answers the collector's scripts from snapshots: recorded hosts, real connections.

It is a program: ``python -m gapline.orchestrator.transport.ssh.replay_server FOLDER SNAPSHOT…``. Into the private
FOLDER it puts a new client key and a known_hosts file with its own new key. Then it prints its port and serves until
its standard input ends, and FOLDER goes with it. Each recorded host is a user name; that key alone is let in, and
nothing but scripts for ``sh -s`` is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
from functools import partial
from pathlib import Path

import asyncssh

from gapline.orchestrator.collect.replay import answer, ends
from gapline.orchestrator.collect.script import command
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.errors import SnapshotError
from gapline.orchestrator.snapshot import read
from gapline.orchestrator.snapshot.recording import Recording
from gapline.orchestrator.transport.replay import CUT_SCRIPT_STATUS
from gapline.orchestrator.transport.ssh.limits import raise_descriptor_limit

LOOPBACK = "127.0.0.1"
IDENTITY = "identity"
KNOWN_HOSTS = "known_hosts"

_ALGORITHM = "ssh-ed25519"
_SHELL = command(Become.NONE)
_LONGEST = 16 * 1024 * 1024  # bytes of a script; thousands of items come to less than one million
_BACKLOG = 1024  # connections that wait to be accepted


class _Door(asyncssh.SSHServer):
    """One connection: lets in whoever has the key, as one of the recorded hosts."""

    def __init__(self, recording: Recording, key: asyncssh.SSHKey) -> None:
        self._recording, self._key = recording, key
        self._host = ""

    def begin_auth(self, username: str) -> bool:
        """Nobody gets in without a key."""
        self._host = username
        return True

    def public_key_auth_supported(self) -> bool:
        """The only way in."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """The one key of this run, for a host that was recorded."""
        return username in self._recording.hosts and key.public_data == self._key.public_data

    def session_requested(self) -> _Shell:
        """A channel on which one command may run."""
        return _Shell(self._recording, self._host)


class _Shell(asyncssh.SSHServerSession[bytes]):
    """One channel: takes a script and answers it once. asyncssh refuses what is not overridden here."""

    def __init__(self, recording: Recording, host: str) -> None:
        self._lookup = partial(recording.capture, host)
        self._script = bytearray()
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        """Keep the channel to answer on."""
        self._channel = chan

    def exec_requested(self, command: str) -> bool:
        """Only the shell that takes a script."""
        return command == _SHELL

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002 - asyncssh's signature
        """A piece of the script."""
        self._script += data
        if len(self._script) > _LONGEST:
            self._end(CUT_SCRIPT_STATUS)
        elif ends(script := bytes(self._script)):
            self._answer(script)

    def eof_received(self) -> bool:
        """The script breaks off: a shell would end with an error, unless it is done already."""
        self._end(CUT_SCRIPT_STATUS)
        return False

    def _answer(self, script: bytes) -> None:
        out, err = answer(script, self._lookup)
        if self._channel is not None:
            self._channel.write(out)
            self._channel.write_stderr(err)
        self._end(0)

    def _end(self, status: int) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.exit(status)


async def serve(recording: Recording, folder: Path) -> None:
    """Serve until standard input ends."""
    host_key, client_key = (asyncssh.generate_private_key(_ALGORITHM) for _ in range(2))
    server = await asyncssh.listen(
        LOOPBACK,
        0,
        config=None,
        server_host_keys=[host_key],
        server_factory=lambda: _Door(recording, client_key),
        encoding=None,
        line_editor=False,
        allow_pty=False,
        agent_forwarding=False,
        x11_forwarding=False,
        gss_host=None,
        backlog=_BACKLOG,
    )
    port = server.get_port()
    known = f"[{LOOPBACK}]:{port} {host_key.export_public_key().decode()}"
    _private(folder / IDENTITY, client_key.export_private_key())
    _private(folder / KNOWN_HOSTS, known.encode())
    print(port, flush=True)  # noqa: T201 - how the parent learns the port
    await _end_of_input()
    server.close()


async def _end_of_input() -> None:
    """The parent holds the other end of standard input; however it ends, the kernel closes that."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(1024):
        pass


def _private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - from a descriptor
        file.write(content)


def main() -> int:
    """Serve what the arguments name; the exit status."""
    arguments = argparse.ArgumentParser(prog="replay_server", description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("folder", type=Path, help="private directory for the client key and known_hosts")
    arguments.add_argument("snapshots", type=Path, nargs="+", metavar="SNAPSHOT", help="later ones replace captures")
    arguments.add_argument("--copies", type=int, default=0, metavar="N", help="each HOST also as HOST-0001 … HOST-N")
    given = arguments.parse_args()
    try:
        recording = Recording([read(path) for path in given.snapshots], copies=given.copies)
        recording.check()
    except SnapshotError as error:
        print(error, file=sys.stderr)  # noqa: T201 - for the parent
        return error.exit_code
    raise_descriptor_limit()
    try:
        asyncio.run(serve(recording, given.folder))
    finally:
        shutil.rmtree(given.folder, ignore_errors=True)  # also when the parent was killed and cannot
    return 0


if __name__ == "__main__":
    sys.exit(main())
