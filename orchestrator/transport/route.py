"""What every route offers: channels on which one command runs, with its streams pushed as they arrive."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol


class Stream(StrEnum):
    """The two output streams of a command."""

    OUT = "out"
    ERR = "err"


Receive = Callable[[Stream, bytes], None]
"""Called in the event loop for every piece of output, in order per stream."""


class Channel(Protocol):
    """One running command on the far side."""

    async def send(self, data: bytes) -> None:
        """Write to its standard input, waiting for flow control."""

    def close_input(self) -> None:
        """End of its standard input: the collector's signal to stop and clean up."""

    async def ended(self) -> int | None:
        """Wait until both streams ended; the exit status, None when the far side gave none.

        Raises:
            ConnectionDropped: the connection was lost. All output that had come was delivered before.
        """

    def abandon(self) -> None:
        """Stop listening and free our side at once, whatever the far side does."""


class Route(Protocol):
    """A way to one target. `connections` and `sessions` count what was opened, for tests and the run."""

    target: str
    connections: int
    sessions: int

    async def open(self, command: str, receive: Receive) -> Channel:
        """Run a command line on the target's login shell.

        Raises:
            TransportError: the channel could not be opened.
            SessionRefused: the server grants no further session now; try again when one has ended.
        """

    async def close(self) -> None:
        """Close everything. Safe to call twice and while cancelled."""
