"""Jump hosts: one connection to each, shared by all targets behind it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import anyio

from gapline.orchestrator.model.errors import ConnectionDropped, TransportError
from gapline.orchestrator.transport.ssh.hop import Endpoint, Hop, resolve

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import asyncssh

    from gapline.orchestrator.transport.ssh.proxy import Proxy
    from gapline.orchestrator.transport.ssh.ssh_config import UserConfig

    Reach = Callable[[str, Hop], Awaitable[tuple[asyncssh.SSHClientConnection, Proxy | None]]]

_CLOSE_SECONDS = 2.0


class Jumps:
    """The connections to jump hosts, made when first needed. One that fails is not tried again for every target."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._locks: defaultdict[Endpoint, anyio.Lock] = defaultdict(anyio.Lock)
        self._open: dict[Endpoint, tuple[asyncssh.SSHClientConnection, Proxy | None]] = {}
        self._failed: dict[Endpoint, TransportError] = {}

    async def before(self, target: str, hop: Hop, files: UserConfig) -> asyncssh.SSHClientConnection | None:
        """The connection through which a hop is reached; None when it is reached directly.

        Raises:
            TransportError: the jump host was not reached.
        """
        if hop.via is None:
            return None
        async with self._locks[hop.via]:
            if (failed := self._failed.get(hop.via)) is not None:
                raise _for(target, failed)
            connection, _ = self._open.get(hop.via, (None, None))
            if connection is not None and connection.is_closed():
                raise ConnectionDropped(target, f"the connection to the jump host {hop.via.name} was lost")
            if connection is not None:
                return connection
            return await self._connect(target, hop.via, files)

    async def close(self) -> None:
        """Close all of them, the farthest first."""
        with anyio.CancelScope(shield=True):
            while self._open:
                _, (connection, proxy) = self._open.popitem()
                connection.close()
                with anyio.move_on_after(_CLOSE_SECONDS):
                    await connection.wait_closed()
                connection.abort()
                if proxy is not None:
                    await proxy.close()

    async def _connect(self, target: str, jump: Endpoint, files: UserConfig) -> asyncssh.SSHClientConnection:
        try:
            self._open[jump] = await self._reach(f"jump host {jump.name}", resolve(jump, files))
        except TransportError as error:
            self._failed[jump] = error
            raise _for(target, error) from error
        return self._open[jump][0]


def _for(target: str, error: TransportError) -> TransportError:
    """A jump host's error as the error of a target behind it."""
    return type(error)(target, f"not reached: {error}", hint=error.hint, evidence=error.evidence)
