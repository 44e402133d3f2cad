"""Which host keys are known, and what it means when a server offers another one.

asyncssh says the same for an unknown and for a changed key, trusts a key known under the host's address alone, and
checks nothing at all when `UserKnownHostsFile none` is set; OpenSSH does none of that. So the match is our own, by the
name that OpenSSH would use, and asyncssh is handed its result.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import asyncssh

from gapline.orchestrator.model.errors import (
    ConfigError,
    HostKeyChanged,
    HostKeyRevoked,
    HostKeyUnknown,
    TransportError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_State = tuple[int, int] | None
SSH_PORT = 22
_PLAIN = (  # sshd_config(5), HostKeyAlgorithms: OpenSSH's own order
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
_CERTIFICATES = tuple(f"{algorithm.removesuffix('@openssh.com')}-cert-v01@openssh.com" for algorithm in _PLAIN)
OPENSSH_FILES = (  # ssh_config(5), UserKnownHostsFile and GlobalKnownHostsFile
    Path("~/.ssh/known_hosts"),
    Path("~/.ssh/known_hosts2"),
    Path("/etc/ssh/ssh_known_hosts"),
    Path("/etc/ssh/ssh_known_hosts2"),
)


@dataclass(frozen=True, slots=True)
class Known:
    """What the files say about one server. `exact` is False when it was found under the name without its port only."""

    keys: tuple[asyncssh.SSHKey, ...]
    authorities: tuple[asyncssh.SSHKey, ...]
    revoked: tuple[asyncssh.SSHKey, ...]
    exact: bool = True

    def __bool__(self) -> bool:
        return bool(self.keys or self.authorities)

    @property
    def algorithms(self) -> list[str]:
        """What to ask the server for: certificates of a known authority, then known keys, then everything else.

        Everything else, so that a server whose key has changed to another algorithm shows it. As asyncssh does it, such
        a server finds nothing in common and hangs up without a word.
        """
        certificates = _CERTIFICATES if self.authorities else ()
        known = (algorithm.decode("ascii") for key in self.keys for algorithm in key.sig_algorithms)
        return list(dict.fromkeys((*certificates, *known, *_PLAIN)))


@dataclass(frozen=True, slots=True)
class OfferedKey:
    """The key a server shows, as `ssh-keyscan` and `ssh-keygen -l` would print it."""

    host: str  # the target
    name: str  # as it is listed in known_hosts: a name, or [name]:port
    fingerprint: str  # SHA256:…
    algorithm: str
    line: str  # for known_hosts


class KnownHosts:
    """The known_hosts files, each parsed once as long as it stays as it is."""

    def __init__(self) -> None:
        self._files: dict[Path, tuple[_State, asyncssh.SSHKnownHosts]] = {}

    def about(self, files: Sequence[Path], name: str, port: int) -> Known:
        """What is known about a server called `name` on `port`."""
        listed = known_name(name, port)
        exact = self._match(files, listed)
        if exact or port == SSH_PORT:
            return exact
        # OpenSSH also takes the key of the name without the port, but never calls another one changed for it.
        plain = self._match(files, name)
        return Known(plain.keys, plain.authorities, (*exact.revoked, *plain.revoked), exact=False)

    def _match(self, files: Sequence[Path], listed: str) -> Known:
        keys: list[asyncssh.SSHKey] = []
        authorities: list[asyncssh.SSHKey] = []
        revoked: list[asyncssh.SSHKey] = []
        for file in files:
            found = self._read(file).match(listed, "", None)
            keys.extend(found[0])
            authorities.extend(found[1])
            revoked.extend(found[2])
        return Known(tuple(keys), tuple(authorities), tuple(revoked))

    def _read(self, file: Path) -> asyncssh.SSHKnownHosts:
        state = _state(file)
        if file not in self._files or self._files[file][0] != state:
            self._files[file] = state, _parse(file)
        return self._files[file][1]


def known_name(name: str, port: int) -> str:
    """How known_hosts lists a server (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT)."""
    return name if port == SSH_PORT else f"[{name}]:{port}"


def rejected(target: str, known: Known, offered: OfferedKey | None, said: str) -> TransportError:
    """The error for a host key that was not accepted. `offered` is the key, None when asyncssh refused it by itself."""
    if "revoked" in said:
        return HostKeyRevoked(
            target,
            "the server offers a host key that is marked as revoked",
            hint="Do not connect. Find out why it was revoked; a server that was re-installed needs a new host key.",
            evidence=said,
        )
    if offered is None:
        return HostKeyUnknown(
            target,
            f"the server's host certificate is not accepted ({said})",
            hint="Look at its principals, validity and authority with `ssh-keygen -L -f CERTIFICATE` on the server.",
            evidence=said,
        )
    shown = f"{offered.algorithm} {offered.fingerprint}"
    if known.keys and known.exact:
        return HostKeyChanged(
            target,
            f"the host key has changed: the server offers {shown}",
            hint=f"If it was re-installed: `ssh-keygen -R '{offered.name}'`, then `gapline trust {target}`. If not, "
            "somebody may be in between: do not connect.",
            evidence=offered.line,
        )
    return HostKeyUnknown(
        target,
        f"the host key is not known: the server offers {shown}",
        hint=f"Compare it with `ssh-keygen -lf /etc/ssh/ssh_host_…_key.pub` there, then run `gapline trust {target}`.",
        evidence=offered.line,
    )


def describe(target: str, name: str, port: int, key: asyncssh.SSHKey) -> OfferedKey:
    """A key as people compare it and as known_hosts stores it."""
    text = key.export_public_key().decode("ascii").split()
    listed = known_name(name, port)
    return OfferedKey(target, listed, key.get_fingerprint(), text[0], f"{listed} {text[0]} {text[1]}")


def trust(known_hosts: Path, offered: OfferedKey) -> bool:
    """Record a key that a person has compared. False when it was there already.

    Raises:
        HostKeyChanged: another key is recorded for this name; it is never replaced.
        HostKeyRevoked: this key is marked as revoked.
        ConfigError: the file cannot be read or written.
    """
    path = known_hosts.expanduser()
    known = KnownHosts().about((path,), offered.name, SSH_PORT)
    key = asyncssh.import_public_key(offered.line.split(" ", 1)[1])
    if key in known.revoked:
        raise rejected(offered.host, known, offered, "revoked")
    if key in known.keys:
        return False
    if known.keys:
        raise rejected(offered.host, known, offered, "changed")
    try:
        _append(path, offered.line)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", path=path, hint="Name another file.") from error
    return True


def _append(path: Path, line: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b") as file:
        torn = file.seek(0, os.SEEK_END) > 0 and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n"
        file.write((b"\n" if torn else b"") + line.encode("ascii") + b"\n")


def _parse(file: Path) -> asyncssh.SSHKnownHosts:
    """A file as asyncssh reads it, less the lines that it chokes on: OpenSSH skips them too."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return asyncssh.SSHKnownHosts()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=file, hint="Name another file.") from error
    try:
        return asyncssh.import_known_hosts(text)
    except ValueError:
        return asyncssh.import_known_hosts("\n".join(filter(_is_readable, text.splitlines())))


def _state(file: Path) -> _State:
    """When it was last written; None when it is not there."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _is_readable(line: str) -> bool:
    try:
        asyncssh.import_known_hosts(line)
    except ValueError:
        return False
    return True
