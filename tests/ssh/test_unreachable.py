"""Hosts that are not reached: each way has its own error, with a hint, and only what can pass is tried again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.model.errors import (
    ConnectionDropped,
    ConnectionRefused,
    ConnectTimedOut,
    NameNotResolved,
    ProtocolFailed,
    TransportError,
)
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.transport.ssh.dialer import Dialer
from tests.ssh.conftest import MakeDialer
from tests.ssh.output import Output
from tests.ssh.server import Asking, Talk, full_backlog, raw_server, ssh_server
from tests.ssh.sshd import free_port

pytestmark = pytest.mark.ssh


def at(port: int, address: str = "127.0.0.1", timeout: float = 10.0) -> Host:
    """A host on loopback."""
    return Host(name="pve1", address=address, port=port, user="auditor", connect_timeout=timeout)


async def failure(dialer: Dialer, host: Host) -> TransportError:
    """The error of one attempt, which always names the target and what to do."""
    with pytest.raises(TransportError) as caught:
        await dialer.connect(host)
    assert str(caught.value).startswith("pve1: ")
    assert caught.value.hint
    assert caught.value.problem.kind in {ProblemKind.UNREACHED, ProblemKind.DROPPED}
    return caught.value


async def test_refused(dialer: Dialer) -> None:
    """Nothing listens."""
    error = await failure(dialer, at(free_port()))
    assert type(error) is ConnectionRefused


async def test_refused_at_every_address_of_a_name(dialer: Dialer) -> None:
    """Several addresses give one combined OSError without a number."""
    assert type(await failure(dialer, at(free_port(), "localhost"))) is ConnectionRefused


async def test_name_not_resolved(dialer: Dialer) -> None:
    """A name that cannot exist (RFC 6761)."""
    assert type(await failure(dialer, at(22, "pve1.invalid"))) is NameNotResolved


async def test_no_route(dialer: Dialer) -> None:
    """A network that is reserved and has no route here, or no answer: never a bare OSError."""
    error = await failure(dialer, at(22, "::ffff:0:0", timeout=1.0))
    assert isinstance(error, ConnectionRefused | ConnectTimedOut)


async def test_blackhole(dialer: Dialer) -> None:
    """Packets are dropped: a time-out that says that nothing answered."""
    with full_backlog() as port:
        error = await failure(dialer, at(port, timeout=0.3))
    assert type(error) is ConnectTimedOut
    assert "no answer" in str(error)


async def test_silent_server_is_told_from_a_blackhole(dialer: Dialer) -> None:
    """Something accepts and says nothing."""
    connections = 0

    async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read(-1)

    async with raw_server(silent) as port:
        error = await failure(dialer, at(port, timeout=0.3))
    assert type(error) is ConnectTimedOut
    assert "accepts the connection" in str(error)
    assert connections == 2  # a time-out is tried again once


async def endless(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Lines before the version, without end."""
    while True:
        writer.write(b"Welcome to a talkative machine\r\n" * 100)
        await writer.drain()


async def garbage(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """No line feed anywhere."""
    writer.write(bytes(range(128, 256)) * 1_000)
    await writer.drain()
    await asyncio.sleep(60)


async def other_protocol(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An SSH 1 server."""
    writer.write(b"SSH-1.5-old\r\n")
    await writer.drain()
    await reader.read(-1)


async def broken_packets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A good version, then nonsense."""
    writer.write(b"SSH-2.0-broken\r\n" + b"\xff" * 4_000)
    await writer.drain()
    await reader.read(-1)


@pytest.mark.parametrize("talk", [endless, garbage, other_protocol, broken_packets])
async def test_not_an_ssh_server(dialer: Dialer, talk: Talk) -> None:
    """Whatever it says, it ends in ProtocolFailed, at once and without a second attempt."""
    async with raw_server(talk) as port:
        assert type(await failure(dialer, at(port))) is ProtocolFailed


async def test_slow_drip_ends_at_the_time_out(dialer: Dialer) -> None:
    """A byte now and then does not hold the login open for ever."""

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"x\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with raw_server(drip) as port:
        assert type(await failure(dialer, at(port, timeout=0.4))) is ConnectTimedOut


async def test_a_server_that_hangs_up_is_tried_again(make_dialer: MakeDialer) -> None:
    """What MaxStartups does to the tenth login passes; the attempts are limited."""
    connections = 0

    async def shed(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.write(b"Exceeded MaxStartups\r\n")
        await writer.drain()

    async with raw_server(shed) as port:
        error = await failure(make_dialer(attempts=3), at(port))
    assert type(error) is ProtocolFailed
    assert "MaxStartups" in error.hint
    assert connections == 3


class Mute(Asking):
    """Accepts a password, and then never says so."""

    async def validate_password(self, username: str, password: str) -> bool:  # type: ignore[override]
        """Hang."""
        await asyncio.sleep(60)
        return super().validate_password(username, password)


class Typist:
    """Gives the same answer to everything."""

    async def ask(self, question: str, *, echo: bool) -> str | None:  # noqa: ARG002
        """Answer."""
        return "letmein"


async def test_a_login_that_hangs(make_dialer: MakeDialer, tmp_path: Path) -> None:
    """The server knows us, asks, and never decides: not tried again, the account could be locked."""
    async with ssh_server(tmp_path, lambda: Mute("letmein")) as server:
        error = await failure(make_dialer(Typist()), server.host(timeout=0.5))
    assert type(error) is ConnectTimedOut
    assert "login" in str(error)


class Open(asyncssh.SSHServer):
    """Lets everybody in."""

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """No login needed."""
        return False


async def test_a_peer_that_falls_silent_is_noticed(make_dialer: MakeDialer, tmp_path: Path) -> None:
    """Without an answer to keepalives a channel ends as dropped, instead of waiting for ever."""
    async with ssh_server(tmp_path, Open, stuck) as server:
        cable = Cable(server.port)
        async with raw_server(cable.carry) as port:
            known = server.known_hosts.read_text().replace(f"]:{server.port}", f"]:{port}")
            server.known_hosts.write_text(known)
            host = replace(server.host(), port=port)
            route = await make_dialer(keepalive_interval=1, keepalive_count=1).connect(host)
            channel = await route.open("anything", Output().receive)
            cable.pulled = True
            with pytest.raises(ConnectionDropped):
                await channel.ended()
            await route.close()


async def stuck(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """A command that never ends."""
    await process.stdin.read(-1)


class Cable:
    """Carries connections to a port until it is pulled; then both ends hear nothing more, not even an end."""

    def __init__(self, port: int) -> None:
        self._port, self.pulled = port, False

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Both directions of one connection."""
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        finally:
            back.transport.abort()

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            if not self.pulled:
                sink.write(data)
                await sink.drain()
