"""One session on an SSH connection: a command with its streams."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncssh

from gapline.orchestrator.model.errors import ConnectionDropped
from gapline.orchestrator.transport.route import Receive, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

_DROPPED_HINT = "Run it again; when it repeats, look at the host's uptime, its network and `journalctl -u ssh`."


class SshChannel(asyncssh.SSHClientSession[bytes]):
    """Pushes every piece of output to `receive` straight from the packet it came in; nothing is kept here."""

    def __init__(self, target: str, receive: Receive, dropped: Callable[[], bool]) -> None:
        self._target, self._receive, self._dropped = target, receive, dropped
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._status: int | None = None
        self._answered = False  # an exit status or a signal came: the command ended by itself
        self._failure: BaseException | None = None

    # What asyncssh calls

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """The channel is open."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """A piece of output. An error of the receiver ends this channel, not the connection with all others on it."""
        if self._failure is not None:
            return
        try:
            self._receive(Stream.OUT if datatype is None else Stream.ERR, data)
        except Exception as error:  # noqa: BLE001 - handed to whoever waits in `ended`
            self._failure = error
            self.abandon()

    def exit_status_received(self, status: int) -> None:
        """The command's exit status."""
        self._status, self._answered = status, True

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: ARG002, FBT001
        """The command was killed by a signal, so there is no status."""
        self._answered = True

    def pause_writing(self) -> None:
        """The far side reads slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The far side has caught up."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel has closed, for whatever reason."""
        self._finish(exc)

    # What the collector calls

    @property
    def has_ended(self) -> bool:
        """Whether its session is free again."""
        return self._ended.done()

    async def send(self, data: bytes) -> None:
        """Write to standard input, waiting for flow control. Without effect once the command has ended."""
        await self._writable.wait()
        if self._channel is None or self._ended.done():
            return
        try:
            self._channel.write(data)
        except BrokenPipeError:  # it closed its input or ended meanwhile; `ended` tells
            return
        await self._writable.wait()

    def close_input(self) -> None:
        """End of standard input."""
        if self._channel is not None and not self._ended.done():
            try:
                self._channel.write_eof()
            except BrokenPipeError:
                return

    async def ended(self) -> int | None:
        """Wait until both streams have ended; see `Channel.ended`."""
        await asyncio.shield(self._ended)
        if self._failure is not None:
            raise self._failure
        if not self._answered and self._dropped():
            raise ConnectionDropped(self._target, "the connection was lost", hint=_DROPPED_HINT)
        return self._status

    def abandon(self) -> None:
        """Free our side now. The server is told, but not waited for."""
        if self._channel is not None and not self._ended.done():
            self._answered = True
            self._channel.abort()
        self._finish(None)

    def _finish(self, error: Exception | None) -> None:
        self._writable.set()
        if self._ended.done():
            return
        if error is not None and self._failure is None:
            self._failure = ConnectionDropped(
                self._target, "the connection was lost", hint=_DROPPED_HINT, evidence=str(error)
            )
        self._ended.set_result(None)
