"""One SSH server on the way to a target, with everything that the inventory and the user's files say about it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.transport.ssh.host_keys import OPENSSH_FILES, SSH_PORT
from gapline.orchestrator.transport.ssh.ssh_config import UserConfig, local_user

if TYPE_CHECKING:
    from asyncssh.config import SSHClientConfig

    from gapline.orchestrator.inventory.host import Host

_JUMP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:@\[\]]+))(?::(?P<port>\d+))?")
_DEFAULT_IDENTITIES = ("id_ed25519_sk", "id_ecdsa_sk", "id_ed25519", "id_ecdsa", "id_rsa")

LOGIN_SECONDS = 10.0
"""For one login, where neither the inventory nor ~/.ssh/config says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server as somebody named it. None leaves the setting to the user's files."""

    name: str
    user: str | None = None
    port: int | None = None
    identity: tuple[Path, ...] = ()
    known_hosts: Path | None = None
    jump: str | None = None
    timeout: float | None = None  # seconds for one login

    @classmethod
    def of(cls, host: Host) -> Endpoint:
        """The server of an inventory entry."""
        return cls(
            name=host.address,
            user=host.user,
            port=host.port,
            identity=host.identity,
            known_hosts=host.known_hosts,
            jump=host.jump,
            timeout=host.connect_timeout,
        )

    def through(self, jump: str, before: str | None) -> Endpoint:
        """A jump host before this one. It inherits keys and known hosts, which an inventory sets for a whole site."""
        match = _JUMP.fullmatch(jump.strip())
        if match is None:
            hint = "Write user@host:port, and several with commas between them, nearest first."
            raise ConfigError(f"not a jump host: {jump!r}", hint=hint)
        return Endpoint(
            name=match["v6"] or match["host"],
            user=match["user"],
            port=int(match["port"]) if match["port"] else None,
            identity=self.identity,
            known_hosts=self.known_hosts,
            jump=before,
            timeout=self.timeout,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """An endpoint with the user's files applied."""

    endpoint: Endpoint
    config: SSHClientConfig
    address: str
    port: int
    user: str
    key_name: str  # what known_hosts lists it as
    known_hosts: tuple[Path, ...]
    identities: tuple[Path, ...]
    certificates: tuple[Path, ...]
    identities_only: bool  # the agent may offer no other keys
    agent: str | None  # socket path
    via: Endpoint | None  # the jump host before it
    proxy: str | None  # ProxyCommand
    timeout: float  # seconds for one login

    @property
    def login(self) -> str:
        """For messages and questions."""
        return f"{self.user}@{self.address}" + ("" if self.port == SSH_PORT else f":{self.port}")


def resolve(endpoint: Endpoint, files: UserConfig) -> Hop:
    """Apply the user's files to an endpoint; what the endpoint sets itself wins.

    Raises:
        ConfigError: the files or the jump cannot be understood.
    """
    config = files.resolve(endpoint.name, endpoint.user, endpoint.port)
    address = str(config.get("Hostname", endpoint.name))
    port = endpoint.port or _port(config.get("Port", SSH_PORT))
    via = _via(endpoint, config)
    proxy = config.get("ProxyCommand")
    return Hop(
        endpoint=endpoint,
        config=config,
        address=address,
        port=port,
        user=str(endpoint.user or config.get("User") or local_user()),
        key_name=str(config.get("HostKeyAlias") or address),
        known_hosts=_known_hosts(endpoint, config, address),
        identities=endpoint.identity or _identities(config),
        certificates=_paths(config.get("CertificateFile", ())),
        identities_only=bool(endpoint.identity or config.get("IdentitiesOnly")),
        agent=_agent(config),
        via=via,
        proxy=str(proxy) if proxy and via is None and endpoint.jump is None else None,
        timeout=endpoint.timeout or _seconds(config.get("ConnectTimeout")) or LOGIN_SECONDS,
    )


def refuse_circles(hop: Hop, files: UserConfig) -> None:
    """Follow the jump hosts to the first one.

    Raises:
        ConfigError: one of them is reached through itself.
    """
    seen: set[Endpoint] = set()
    while hop.via is not None:
        if hop.via in seen:
            hint = f"Give it `ProxyJump none` in ~/.ssh/config: `Host {hop.via.name}`, above more general blocks."
            raise ConfigError(f"the jump host {hop.via.name} goes through itself", hint=hint)
        seen.add(hop.via)
        hop = resolve(hop.via, files)


def _via(endpoint: Endpoint, config: SSHClientConfig) -> Endpoint | None:
    """The last jump host before this server; the ones before it are that one's own jump, as `ssh -J` does it."""
    jump = endpoint.jump or config.get("ProxyJump")
    if not jump or str(jump).lower() == "none":
        return None
    *before, last = str(jump).split(",")
    return endpoint.through(last, ",".join(before) or None)


def _known_hosts(endpoint: Endpoint, config: SSHClientConfig, address: str) -> tuple[Path, ...]:
    if endpoint.known_hosts is not None:
        return (endpoint.known_hosts.expanduser(),)
    user = config.get("UserKnownHostsFile")
    system = config.get("GlobalKnownHostsFile")
    files = [
        *(OPENSSH_FILES[:2] if user is None else _paths(user)),
        *(OPENSSH_FILES[2:] if system is None else _paths(system)),
    ]
    expanded = {"%d": str(Path.home()), "%h": address, "%n": endpoint.name}
    return tuple(Path(re.sub("%[dhn]", lambda m: expanded[m[0]], str(file))).expanduser() for file in files)


def _identities(config: SSHClientConfig) -> tuple[Path, ...]:
    named = config.get("IdentityFile")
    if named is not None:
        return _paths(named)
    return tuple(path for name in _DEFAULT_IDENTITIES if (path := Path.home() / ".ssh" / name).is_file())


def _agent(config: SSHClientConfig) -> str | None:
    named = config.get("IdentityAgent", "SSH_AUTH_SOCK")  # None when the file says `none`
    if named == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    if isinstance(named, str) and named.startswith("$"):
        return os.environ.get(named.strip("${}")) or None
    return str(Path(str(named)).expanduser()) if named else None


def _paths(value: object) -> tuple[Path, ...]:
    return tuple(Path(str(item)).expanduser() for item in value) if isinstance(value, (list, tuple)) else ()


def _port(value: object) -> int:
    return value if isinstance(value, int) else SSH_PORT


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, int) and value > 0 else None
