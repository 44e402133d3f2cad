"""The route itself: one authenticated connection to one host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import asyncssh
import structlog

from gapline.orchestrator.model.errors import ConnectionDropped, ProtocolFailed, SessionRefused, TransportError
from gapline.orchestrator.transport.ssh.channel import SshChannel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gapline.orchestrator.transport.route import Receive

_LOG = structlog.get_logger("gapline.ssh")
_CLOSE_SECONDS = 2.0


class SshRoute:
    """One connection, never re-opened silently; sessions are opened on it as they are needed."""

    def __init__(
        self,
        target: str,
        connection: asyncssh.SSHClientConnection,
        *,
        sessions_at_once: int,
        release: Callable[[], Awaitable[None]],
    ) -> None:
        self.target = target
        self.connections = 1
        self.sessions = 0
        self._connection = connection
        self._sessions_at_once = sessions_at_once
        self._open: set[SshChannel] = set()
        self._release = release
        self._closed = False

    async def open(self, command: str, receive: Receive) -> SshChannel:
        """Run a command line on the login shell; see `Route.open`."""
        self._open = {channel for channel in self._open if not channel.has_ended}
        if len(self._open) >= self._sessions_at_once:
            raise SessionRefused(self.target, f"{self._sessions_at_once} sessions are open, which is our own limit")
        channel = SshChannel(self.target, receive, self._was_dropped)
        self._open.add(channel)
        try:
            await self._connection.create_session(lambda: channel, command, encoding=None, request_pty=False)
        except BaseException as error:
            channel.abandon()
            self._open.discard(channel)
            if isinstance(error, asyncssh.ChannelOpenError):
                raise self._not_opened(error) from error
            if isinstance(error, OSError | asyncssh.Error):
                raise ConnectionDropped(self.target, "the connection was lost", evidence=str(error)) from error
            raise
        self.sessions += 1
        _LOG.debug("ssh.channel", target=self.target, session=self.sessions)
        return channel

    async def close(self) -> None:
        """Close the connection and everything on it. Safe to call twice and while cancelled."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            self._connection.close()
            with anyio.move_on_after(_CLOSE_SECONDS):
                await self._connection.wait_closed()
            self._connection.abort()
            await self._release()

    def _was_dropped(self) -> bool:
        return self._connection.is_closed() and not self._closed

    def _not_opened(self, error: asyncssh.ChannelOpenError) -> TransportError:
        if self._connection.is_closed():
            return ConnectionDropped(self.target, "the connection was lost", evidence=error.reason)
        granted_before = self.sessions > 0 or bool(self._open)  # else there is nothing whose end could be waited for
        if error.code == asyncssh.OPEN_CONNECT_FAILED and granted_before:
            return SessionRefused(
                self.target,
                "the server grants no further session for now",
                hint="It waits until one has ended. `MaxSessions` in sshd_config sets how many there may be.",
                evidence=error.reason,
            )
        return ProtocolFailed(
            self.target,
            "the login works, but the server runs no command for this user",
            hint="Look for `MaxSessions 0`, `ForceCommand` and a login shell that does not exist.",
            evidence=error.reason,
        )
