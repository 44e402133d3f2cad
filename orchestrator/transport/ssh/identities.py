"""The user's private keys: each file is read once, and its passphrase asked for once, whatever the number of hosts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import asyncssh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gapline.orchestrator.transport.ssh.prompts import Asker, LoginClock

_WRONG_PASSPHRASE = ("Incorrect passphrase", "Unable to decrypt")  # asyncssh 2.24, public_key.py
_TRIES = 3  # as ssh(1): NumberOfPasswordPrompts


class KeyNotOpened(Exception):
    """The server takes a key that is encrypted, and it could not be opened."""


@dataclass(slots=True)
class Identity:
    """One key file. Exactly one of `key`, `public` with `data`, and `fault` leads anywhere."""

    path: Path
    key: asyncssh.SSHKey | None = None  # the private key, once it is open
    public: asyncssh.SSHKey | None = None
    certificate: asyncssh.SSHCertificate | None = None
    data: bytes = b""  # an encrypted private key
    fault: str = ""  # why it cannot be used
    withheld: bool = False  # the person declined: do not ask again for the next host
    turn: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def locked(self) -> bool:
        """Whether a passphrase is needed first."""
        return bool(self.data) and self.key is None

    async def unlock(self, asker: Asker, clock: LoginClock) -> asyncssh.SSHKey:
        """The private key, after asking for its passphrase when nobody has yet."""
        clock.stop()
        try:
            async with self.turn:
                if self.key is None and not self.withheld:
                    self.key = await self._ask(asker)
                if self.key is None:
                    self.withheld = True
                    raise KeyNotOpened(self.fault or f"the passphrase of {shown(self.path)} was not given")
                return self.key
        finally:
            clock.start()

    async def _ask(self, asker: Asker) -> asyncssh.SSHKey | None:
        for _ in range(_TRIES):
            passphrase = await asker.ask(f"Passphrase for {shown(self.path)}:")
            if not passphrase:
                return None
            try:
                # bcrypt takes a good part of a second: not in the event loop
                return await anyio.to_thread.run_sync(partial(asyncssh.import_private_key, self.data, passphrase))
            except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
                if not str(error).startswith(_WRONG_PASSPHRASE):
                    self.fault = str(error)  # a cipher or a key derivation that this installation lacks
                    return None
        return None


class LockedKeyPair(asyncssh.SSHKeyPair):
    """An encrypted key: offered by its public half, opened only when the server says that it takes it."""

    _key_type = "local"

    def __init__(self, identity: Identity, asker: Asker, clock: LoginClock, *, certified: bool) -> None:
        public = identity.public
        assert public is not None  # noqa: S101 - checked by the only caller
        super().__init__(
            public.algorithm,
            public.algorithm,
            public.sig_algorithms,
            public.sig_algorithms,
            public.public_data,
            None,
            identity.certificate if certified else None,
        )
        self._identity, self._asker, self._clock = identity, asker, clock

    async def sign_async(self, data: bytes) -> bytes:
        """Sign with the opened key; asyncssh prefers this to `sign` when it is there."""
        key = await self._identity.unlock(self._asker, self._clock)
        signature: bytes = key.sign(data, self.sig_algorithm)
        return signature


class Identities:
    """All key files of a run."""

    def __init__(self) -> None:
        self._read: dict[tuple[Path, tuple[Path, ...]], Identity] = {}

    def of(self, paths: Sequence[Path], certificates: Sequence[Path]) -> tuple[Identity, ...]:
        """The key files of one hop, in their order."""
        wanted = tuple(certificates)
        for path in paths:
            if (path, wanted) not in self._read:
                self._read[path, wanted] = _load(path.expanduser(), wanted)
        return tuple(self._read[path, wanted] for path in paths)


def shown(path: Path) -> str:
    """A path as a person would write it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _load(path: Path, certificates: tuple[Path, ...]) -> Identity:
    try:
        data = path.read_bytes()
    except OSError as error:
        return Identity(path, fault=(error.strerror or str(error)).lower())
    identity = Identity(path)
    try:
        identity.key = asyncssh.import_private_key(data)
        identity.public = identity.key.convert_to_public()
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        identity.public = _public(path, data)
        if b"PRIVATE KEY" in data and "assphrase" in str(error):
            identity.data = data
        elif identity.public is None:
            identity.fault = "not a private key that can be read"
    identity.certificate = _certificate(identity.public, path, certificates)
    return identity


def _public(path: Path, data: bytes) -> asyncssh.SSHKey | None:
    """The public half: OpenSSH's own key format holds it in clear, other formats have it beside them as `.pub`."""
    with suppress(ValueError):
        return asyncssh.import_public_key(data)
    with suppress(OSError, ValueError):
        return asyncssh.read_public_key(f"{path}.pub")
    return None


def _certificate(public: asyncssh.SSHKey | None, path: Path, named: tuple[Path, ...]) -> asyncssh.SSHCertificate | None:
    for file in (*named, Path(f"{path}-cert.pub")):
        try:
            certificate = asyncssh.read_certificate(str(file))
        except (OSError, ValueError):
            continue
        if public is not None and certificate.key.public_data == public.public_data:
            return certificate
    return None
