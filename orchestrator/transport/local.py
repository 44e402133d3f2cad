"""The route to the machine Gapline runs on: the same script, given to a shell of our own."""

from __future__ import annotations

import asyncio
from typing import cast

from gapline.orchestrator.model.errors import ConnectionDropped, ProtocolFailed
from gapline.orchestrator.transport.route import Channel, Receive, Stream

_STREAMS = {1: Stream.OUT, 2: Stream.ERR}


class LocalRoute:
    """Runs commands with `/bin/sh -c`, as sshd does with a login shell."""

    def __init__(self, target: str = "local") -> None:
        self.target = target
        self.connections = 0
        self.sessions = 0
        self._open: set[_Process] = set()

    async def open(self, command: str, receive: Receive) -> Channel:
        """Start the command.

        Raises:
            ProtocolFailed: there is no shell, or no process can be started.
        """
        loop = asyncio.get_running_loop()
        try:
            transport, process = await loop.subprocess_exec(
                lambda: _Process(receive), "/bin/sh", "-c", command, start_new_session=True
            )
        except OSError as error:
            raise ProtocolFailed(self.target, f"no shell could be started: {error}") from error
        self.connections = 1
        self.sessions += 1
        process.attach(transport)
        self._open.add(process)
        return process

    async def close(self) -> None:
        """Abandon what is still open."""
        for process in self._open:
            process.abandon()
        self._open.clear()


class _Process(asyncio.SubprocessProtocol):
    """One shell with its streams."""

    def __init__(self, receive: Receive) -> None:
        self._receive: Receive | None = receive
        self._transport: asyncio.SubprocessTransport | None = None
        self._over = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._left = {1, 2}
        self._exit: int | None = None

    def attach(self, transport: asyncio.SubprocessTransport) -> None:
        self._transport = transport

    async def send(self, data: bytes) -> None:
        """Write to standard input and wait until it is taken.

        Raises:
            ConnectionDropped: the shell does not read any more.
        """
        pipe = self._input
        if pipe is None or pipe.is_closing():
            raise ConnectionDropped("local", "the shell has gone")
        pipe.write(data)
        await self._writable.wait()

    def close_input(self) -> None:
        if (pipe := self._input) is not None:
            pipe.close()

    async def ended(self) -> int | None:
        """Wait for the end of both streams and of the shell."""
        await self._over.wait()
        return self._exit

    def abandon(self) -> None:
        """Let go of everything. The end of its input ends what the shell started; what is stuck in the kernel stays."""
        self._receive = None
        if self._transport is not None:
            self._transport.close()
        self._over.set()
        self._writable.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self._receive is not None:
            self._receive(_STREAMS[fd], data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        self._left.discard(fd)
        self._writable.set()
        self._check()

    def process_exited(self) -> None:
        if self._transport is not None:
            self._exit = self._transport.get_returncode()
        self._check()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _check(self) -> None:
        if not self._left and self._exit is not None:
            self._over.set()
            if self._transport is not None:
                self._transport.close()

    @property
    def _input(self) -> asyncio.WriteTransport | None:
        if self._transport is None:
            return None
        return cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))
