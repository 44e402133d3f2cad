"""The route to a stored snapshot: answers scripts in this process, from captures."""

from __future__ import annotations

import anyio

from gapline.orchestrator.collect.replay import Lookup, answer, ends
from gapline.orchestrator.transport.route import Receive, Stream

CUT_SCRIPT_STATUS = 2
"""What a shell ends with when its script breaks off."""


class ReplayRoute:
    """Every command is a shell that takes a script, as far as a lane can tell."""

    def __init__(self, target: str, lookup: Lookup) -> None:
        self.target = target
        self.connections = 0
        self.sessions = 0
        self._lookup = lookup

    async def open(self, command: str, receive: Receive) -> _Answering:  # noqa: ARG002  # the script says it all
        """A channel that answers when the script is complete."""
        self.connections = 1
        self.sessions += 1
        return _Answering(self._lookup, receive)

    async def close(self) -> None:
        """Nothing is held open."""


class _Answering:
    """Collects the script and answers it once."""

    def __init__(self, lookup: Lookup, receive: Receive) -> None:
        self._lookup, self._receive = lookup, receive
        self._script = bytearray()
        self._over = anyio.Event()
        self._exit: int | None = None

    async def send(self, data: bytes) -> None:
        self._script += data
        if ends(bytes(self._script)):
            out, err = answer(bytes(self._script), self._lookup)
            self._receive(Stream.OUT, out)
            self._receive(Stream.ERR, err)
            self._end(0)

    def close_input(self) -> None:
        self._end(CUT_SCRIPT_STATUS)

    async def ended(self) -> int | None:
        await self._over.wait()
        return self._exit

    def abandon(self) -> None:
        self._over.set()

    def _end(self, status: int) -> None:
        if not self._over.is_set():
            self._exit = status
            self._over.set()
