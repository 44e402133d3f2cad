"""Makes the connections of a run: one per host, shared jump hosts, limits, retries."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING, Self

import anyio
import asyncssh
import stamina
import structlog

from gapline.orchestrator.model.errors import ConnectTimedOut, TransportError
from gapline.orchestrator.transport.ssh.connection import SshRoute
from gapline.orchestrator.transport.ssh.faults import explain
from gapline.orchestrator.transport.ssh.hop import Endpoint, Hop, refuse_circles, resolve
from gapline.orchestrator.transport.ssh.host_keys import KnownHosts, OfferedKey, describe, known_name
from gapline.orchestrator.transport.ssh.identities import Identities
from gapline.orchestrator.transport.ssh.ignored import ignored_settings
from gapline.orchestrator.transport.ssh.jumps import Jumps
from gapline.orchestrator.transport.ssh.limits import Gates, raise_descriptor_limit
from gapline.orchestrator.transport.ssh.login import Login
from gapline.orchestrator.transport.ssh.prompts import Asker, LoginClock, Prompts, Waiting
from gapline.orchestrator.transport.ssh.proxy import Proxy
from gapline.orchestrator.transport.ssh.settings import SshSettings
from gapline.orchestrator.transport.ssh.ssh_config import UserConfig

if TYPE_CHECKING:
    from types import TracebackType

    from gapline.orchestrator.inventory.host import Host

_LOG = structlog.get_logger("gapline.ssh")
# All that asyncssh knows, AES-GCM first: its ChaCha20 sets up new ciphers for every packet (seen in a profile).
_CIPHERS = (
    "aes256-gcm@openssh.com",
    "aes128-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
    "aes192-ctr",
    "aes128-ctr",
)


class _Passing(Exception):
    """Carries an error that may be gone a moment later through the retry loop."""

    def __init__(self, error: TransportError) -> None:
        super().__init__(str(error))
        self.error = error


class Dialer:
    """Everything that the connections of one run share. Use it with `async with`, or call `close`."""

    def __init__(self, settings: SshSettings | None = None, prompts: Prompts | None = None) -> None:
        self._settings = settings or SshSettings()
        self._files = UserConfig(self._settings.config)
        self._asker = Asker(prompts)
        self._known = KnownHosts()
        self._identities = Identities()
        self._open = anyio.CapacityLimiter(self._settings.at_once)
        self._gates = Gates(self._settings.logins_at_once)
        self._routes: set[SshRoute] = set()
        self._jumps = Jumps(self._reach)
        # All of asyncssh's own parsing of files is done by us; None and b"" keep it from looking for defaults.
        self._base = asyncssh.SSHClientConnectionOptions(config=None, client_keys=None, known_hosts=b"")
        logging.getLogger("asyncssh").setLevel(logging.ERROR)
        raise_descriptor_limit()

    async def connect(self, host: Host) -> SshRoute:
        """Connect and log in. Waits for a free place first; `close` of the route gives it back.

        Raises:
            TransportError: the host was not reached; every subclass but ConnectionDropped's later uses.
            ConfigError: the user's ssh_config cannot be read.
        """
        place = object()
        await self._open.acquire_on_behalf_of(place)
        try:
            hop = self._hop(host)
            connection, proxy = await self._reach(host.name, hop)
        except BaseException:
            self._open.release_on_behalf_of(place)
            raise

        async def release() -> None:
            self._routes.discard(route)
            self._open.release_on_behalf_of(place)
            if proxy is not None:
                await proxy.close()

        route = SshRoute(host.name, connection, sessions_at_once=self._settings.sessions_at_once, release=release)
        self._routes.add(route)
        return route

    async def offered_key(self, host: Host) -> OfferedKey:
        """The host key that the server shows, unchecked, for a person to compare. Known algorithms are preferred.

        Raises:
            TransportError: the host was not reached.
        """
        hop = self._hop(host)
        known = self._known.about(hop.known_hosts, hop.key_name, hop.port)
        tunnel = await self._jumps.before(host.name, hop, self._files)
        proxy = None
        try:
            proxy = await Proxy.start(hop.proxy) if hop.proxy else None
            with anyio.fail_after(hop.timeout):
                key = await asyncssh.get_server_host_key(
                    hop.address,
                    hop.port,
                    tunnel=tunnel,
                    proxy_command=None,
                    sock=proxy.socket if proxy else None,
                    config=None,
                    options=self._options(hop),
                    server_host_key_algs=known.algorithms,
                )
        except (OSError, asyncssh.Error, ValueError) as error:
            raise explain(host.name, hop, None, error, proxy_said=proxy.said if proxy else "").error from error
        finally:
            if proxy is not None:
                await proxy.close()
        if key is None:
            message = "the server shows no host key"
            raise TransportError(host.name, message)
        return describe(host.name, hop.key_name, hop.port, key)

    def known_hosts(self, host: Host) -> tuple[str, tuple[str, ...]]:
        """Under which name a host is looked up, and in which files; the first is where `gapline trust` writes."""
        hop = self._hop(host)
        return known_name(hop.key_name, hop.port), tuple(str(path) for path in hop.known_hosts)

    def warnings(self, host: Host) -> tuple[str, ...]:
        """What the user's ssh_config sets for this host and we do not do. Also the moment at which a broken file shows.

        Raises:
            ConfigError: a file cannot be understood.
        """
        self._hop(host)
        return ignored_settings(self._files.blocks(host.address))

    async def close(self) -> None:
        """Close the routes that nobody has closed, and then the jump hosts'."""
        for route in tuple(self._routes):
            await route.close()
        await self._jumps.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _hop(self, host: Host) -> Hop:
        hop = resolve(Endpoint.of(host), self._files)
        refuse_circles(hop, self._files)
        return hop

    async def _reach(self, target: str, hop: Hop) -> tuple[asyncssh.SSHClientConnection, Proxy | None]:
        """Log in at one server, through the ones before it, again and again while the failure is of a passing kind."""
        tunnel = await self._jumps.before(target, hop, self._files)
        gate = self._gates.at(hop.via or ("proxy" if hop.proxy else (hop.address, hop.port)))
        try:
            attempts = self._settings.attempts
            async for attempt in stamina.retry_context(_Passing, attempts, None, 0.3, wait_max=4.0, wait_jitter=0.7):
                with attempt:
                    async with gate:
                        return await self._log_in(target, hop, tunnel, attempt.num)
        except _Passing as last:
            raise last.error from last
        raise AssertionError  # the loop returns or raises

    async def _log_in(
        self, target: str, hop: Hop, tunnel: asyncssh.SSHClientConnection | None, number: int
    ) -> tuple[asyncssh.SSHClientConnection, Proxy | None]:
        clock = LoginClock(hop.timeout)
        identities = self._identities.of(hop.identities, hop.certificates)
        known = self._known.about(hop.known_hosts, hop.key_name, hop.port)
        login = Login(target, hop, known, identities, Waiting(self._asker, clock))
        log = _LOG.bind(target=target, address=hop.address, port=hop.port, user=hop.user, attempt=number)
        proxy: Proxy | None = None
        try:
            proxy = await Proxy.start(hop.proxy) if hop.proxy else None
            with clock.scope:
                connection = await self._ask_asyncssh(hop, login, tunnel, proxy)
                log.debug("ssh.connect", outcome="connected")
                return connection, proxy
            raise TimeoutError  # noqa: TRY301 - sorted below with all others
        except BaseException as error:
            if proxy is not None:
                await proxy.close()
            if not isinstance(error, Exception):
                raise
            fault = explain(target, hop, login, error, proxy_said=proxy.said if proxy else "")
            log.debug("ssh.connect", outcome=fault.error.code, passing=fault.passing)
            once = isinstance(fault.error, ConnectTimedOut)  # a second silence says enough
            again = fault.passing and not (once and number > 1)
            raise (_Passing(fault.error) if again else fault.error) from error

    async def _ask_asyncssh(
        self, hop: Hop, login: Login, tunnel: asyncssh.SSHClientConnection | None, proxy: Proxy | None
    ) -> asyncssh.SSHClientConnection:
        return await asyncssh.connect(
            hop.address,
            hop.port,
            options=self._options(hop),
            config=None,
            tunnel=tunnel,
            proxy_command=None,
            sock=proxy.socket if proxy else None,
            username=hop.user,
            client_factory=lambda: login,
            client_keys=login.keys(),
            agent_path=login.agent,
            agent_identities=login.agent_identities() if hop.identities_only and login.agent else None,
            known_hosts=login.known_hosts,
            host_key_alias=hop.key_name,
            server_host_key_algs=() if hop.config.get("HostKeyAlgorithms") else login.known.algorithms,
            encryption_algs=() if hop.config.get("Ciphers") else _CIPHERS,
            x509_trusted_certs=None,
            connect_timeout=None,
            login_timeout=0,
            keepalive_interval=hop.config.get("ServerAliveInterval") or self._settings.keepalive_interval,
            keepalive_count_max=hop.config.get("ServerAliveCountMax") or self._settings.keepalive_count,
            agent_forwarding=False,  # nothing of ours is lent to a machine that is audited
            x11_forwarding=False,
            env=None,
            send_env=None,
        )

    def _options(self, hop: Hop) -> asyncssh.SSHClientConnectionOptions:
        """What the user's files say about this hop, already parsed, so that asyncssh parses no file again."""
        options = copy.copy(self._base)
        options.config = hop.config
        return options
