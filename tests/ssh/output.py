"""Runs one command and keeps what it said."""

from __future__ import annotations

from dataclasses import dataclass, field

from gapline.orchestrator.transport.route import Route, Stream


@dataclass
class Output:
    """Both streams of a command, as they arrive."""

    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    status: int | None = None

    def receive(self, stream: Stream, data: bytes) -> None:
        """Take one piece."""
        (self.out if stream is Stream.OUT else self.err).extend(data)


async def run(route: Route, command: str, given: bytes = b"") -> Output:
    """Run to its end, with `given` on standard input."""
    output = Output()
    channel = await route.open(command, output.receive)
    await channel.send(given)
    channel.close_input()
    output.status = await channel.ended()
    return output
