"""A `ProxyCommand`: its standard input and output are the connection.

asyncssh can start one too, but runs it without a shell and reads its stderr into the SSH stream, so that one warning
from `ssh -W` breaks the connection. Here stderr is kept apart, as the evidence when the command fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket

import anyio

_KEPT = 2_000  # bytes of its stderr
_END_SECONDS = 2.0


class Proxy:
    """The running command; `socket` is our end of the connection."""

    def __init__(self, process: asyncio.subprocess.Process, ours: socket.socket) -> None:
        self.socket = ours
        self._process = process
        self._said = bytearray()
        self._listener = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, command: str) -> Proxy:
        """Start it through the user's shell, as OpenSSH does (sshconnect.c, ssh_proxy_connect).

        Raises:
            OSError: no process could be started.
        """
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                os.environ.get("SHELL") or "/bin/sh",
                "-c",
                f"exec {command}",
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)  # noqa: FBT003 - its signature
        return cls(process, ours)

    @property
    def said(self) -> str:
        """The end of its stderr."""
        return self._said.decode("utf-8", errors="replace").strip()

    async def close(self) -> None:
        """End the command and everything it started. Safe to call twice."""
        self.socket.close()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            with anyio.move_on_after(_END_SECONDS, shield=True):
                await self._process.wait()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._listener.cancel()

    async def _listen(self) -> None:
        stderr = self._process.stderr
        while stderr is not None and (data := await stderr.read(_KEPT)):
            self._said = (self._said + data)[-_KEPT:]
