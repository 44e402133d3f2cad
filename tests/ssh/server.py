"""Servers in this process, for what OpenSSH cannot be made to do: hang, chatter, ask, refuse to finish."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import asyncssh
from asyncssh.auth import KbdIntChallenge, KbdIntResponse

from gapline.orchestrator.inventory.host import Host

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(talk: Talk) -> AsyncIterator[int]:
    """A TCP server that does what `talk` does with each connection; its port."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.CancelledError):
            await talk(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port whose queue is full, so that the kernel drops every further SYN: as good as a blackhole."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)  # noqa: FBT003 - its signature
            client.connect_ex(listener.getsockname())
            waiting.append(client)
        try:
            yield listener.getsockname()[1]
        finally:
            for client in waiting:
                client.close()


class Asking(asyncssh.SSHServer):
    """Lets in by password, or by a one-time code, and counts the attempts."""

    def __init__(self, password: str | None = None, code: str | None = None) -> None:
        self._password, self._code = password, code
        self.attempts: list[str] = []

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """A login is needed."""
        return True

    def public_key_auth_supported(self) -> bool:
        """No keys."""
        return False

    def password_auth_supported(self) -> bool:
        """Whether it takes passwords."""
        return self._password is not None

    def validate_password(self, username: str, password: str) -> bool:  # noqa: ARG002
        """Compare."""
        self.attempts.append(password)
        return password == self._password

    def kbdint_auth_supported(self) -> bool:
        """Whether it asks for a code."""
        return self._code is not None

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> KbdIntChallenge:  # noqa: ARG002
        """One question, with control characters that must not reach a terminal."""
        return "Two factors", "", "en", [("\x1b[2JCode: ", True)]

    def validate_kbdint_response(self, username: str, responses: KbdIntResponse) -> bool:  # noqa: ARG002
        """Compare."""
        self.attempts.extend(responses)
        return list(responses) == [self._code]


class SshServer:
    """A running asyncssh server that an inventory entry can point to."""

    def __init__(self, port: int, known_hosts: Path) -> None:
        self.port, self.known_hosts = port, known_hosts

    def host(self, name: str = "pve1", timeout: float = 10.0) -> Host:
        """Its inventory entry."""
        return Host(
            name=name,
            address="127.0.0.1",
            port=self.port,
            user="auditor",
            known_hosts=self.known_hosts,
            connect_timeout=timeout,
        )


@asynccontextmanager
async def ssh_server(
    directory: Path,
    factory: Callable[[], asyncssh.SSHServer],
    process: Callable[[asyncssh.SSHServerProcess[bytes]], Awaitable[None]] | None = None,
) -> AsyncIterator[SshServer]:
    """An asyncssh server with a fresh host key and a known_hosts file that knows it."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    acceptor = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[key],
        server_factory=factory,
        process_factory=process,
        encoding=None,
        line_editor=False,
    )
    port = acceptor.get_port()
    known_hosts = directory / "known_hosts_in_process"
    known_hosts.write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
    try:
        yield SshServer(port, known_hosts)
    finally:
        acceptor.close()
        await acceptor.wait_closed()
