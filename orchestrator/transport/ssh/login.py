"""One login: answers what the server asks for, and remembers what an error message will need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncssh

from gapline.orchestrator.transport.ssh.host_keys import Known, OfferedKey, describe
from gapline.orchestrator.transport.ssh.identities import Identity, LockedKeyPair, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gapline.orchestrator.transport.ssh.hop import Hop
    from gapline.orchestrator.transport.ssh.prompts import Asker, Waiting

_TRIES = 3  # as ssh(1): NumberOfPasswordPrompts


class Login(asyncssh.SSHClient):
    """What happens between the TCP connection and the first session."""

    def __init__(self, target: str, hop: Hop, known: Known, identities: tuple[Identity, ...], waiting: Waiting) -> None:
        self.hop = hop
        self.known = known
        self.offered: OfferedKey | None = None
        self.accepts: list[str] = []  # authentication methods that the server named
        self.methods: list[str] = []  # the ones that were tried
        self.began = False  # authentication has begun, so the server's key was accepted
        self._target, self._identities = target, identities
        self._asker, self._clock = waiting.asker, waiting.clock
        self._connection: asyncssh.SSHClientConnection | None = None
        self._questions = 0

    @property
    def greeted(self) -> bool:
        """Whether the server has said which version it is."""
        return self._connection is not None and bool(self._connection.get_extra_info("server_version"))

    @property
    def reached(self) -> bool:
        """Whether anything accepted the connection."""
        return self._connection is not None

    @property
    def tried(self) -> str:
        """The keys and methods that were offered, for people: file names and kinds, nothing secret."""
        keys = [_offered(identity, self._asker) for identity in self._identities]
        agent = [f"keys of the agent at {self.agent}"] if self.agent else []
        others = [method for method in self.methods if method != "publickey"]
        return ", ".join([*agent, *keys, *others]) or "no key at all"

    @property
    def has_locked_key(self) -> bool:
        """Whether a key could not be tried because it is encrypted."""
        return any(identity.locked for identity in self._identities)

    def known_hosts(self, _name: str, _address: str, _port: int | None) -> tuple[list[asyncssh.SSHKey], ...]:
        """Our own match, in the form in which asyncssh takes it. It never looks at the address alone."""
        return list(self.known.keys), list(self.known.authorities), list(self.known.revoked)

    def keys(self) -> list[object]:
        """The keys to try, opened ones first; encrypted ones only where a person can open them."""
        pairs: list[object] = [
            (identity.key, identity.certificate) if identity.certificate else identity.key
            for identity in self._identities
            if identity.key is not None
        ]
        for identity in self._identities:
            if identity.locked and identity.public is not None and self._asker and not identity.withheld:
                ways = (True, False) if identity.certificate else (False,)
                pairs.extend(LockedKeyPair(identity, self._asker, self._clock, certified=way) for way in ways)
        return pairs

    @property
    def agent(self) -> str | None:
        """The agent to ask; None when the key files that alone are allowed are all open already."""
        opened = all(identity.key is not None for identity in self._identities)
        return None if self.hop.identities_only and opened else self.hop.agent

    def agent_identities(self) -> list[bytes]:
        """The public keys that the agent may offer when `IdentitiesOnly` is set."""
        publics = [identity.public for identity in self._identities] + [
            identity.certificate for identity in self._identities
        ]
        return [public.public_data for public in publics if public is not None]

    # What asyncssh calls

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Something accepted the connection."""
        self._connection = conn

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        """The key is not among the known ones."""
        self.offered = describe(self._target, self.hop.key_name, self.hop.port, key)
        return False

    def begin_auth(self, username: str) -> None:  # noqa: ARG002
        """The host key was accepted."""
        self.began = True

    async def public_key_auth_requested(self) -> asyncssh.SSHKey | None:
        """All keys with a readable public half were refused; what remains are encrypted files of older formats."""
        self._note("publickey")
        for identity in self._identities:
            if identity.locked and identity.public is None and self._asker and not identity.withheld:
                key = await identity.unlock(self._asker, self._clock)
                identity.public = key.convert_to_public()
                return key
        return None

    async def password_auth_requested(self) -> str | None:
        """The server would take a password."""
        self._note("password")
        return await self._ask(f"Password for {self.hop.login}:", echo=False)

    def kbdint_auth_requested(self) -> str | None:
        """The server would ask questions."""
        self._note("keyboard-interactive")
        return "" if self._asker and self._questions < _TRIES else None

    async def kbdint_challenge_received(
        self,
        name: str,  # noqa: ARG002
        instructions: str,  # noqa: ARG002
        lang: str,  # noqa: ARG002
        prompts: Sequence[tuple[str, bool]],
    ) -> list[str] | None:
        """The server's questions."""
        answers = [await self._ask(f"{self.hop.login}: {text}", echo=echo) for text, echo in prompts]
        return [answer for answer in answers if answer is not None] if None not in answers else None

    def _note(self, method: str) -> None:
        if self._connection is not None and not self.accepts:
            self.accepts = list(self._connection.get_server_auth_methods())
        if method not in self.methods:
            self.methods.append(method)

    async def _ask(self, question: str, *, echo: bool) -> str | None:
        self._questions += 1
        if not self._asker or self._questions > _TRIES:
            return None
        self._clock.stop()
        try:
            return await self._asker.ask(question, echo=echo)
        finally:
            self._clock.start()


def _offered(identity: Identity, asker: Asker) -> str:
    if identity.fault:
        return f"{shown(identity.path)} ({identity.fault})"
    if identity.locked:
        return f"{shown(identity.path)} (encrypted, {'not opened' if asker else 'and nobody to ask'})"
    return shown(identity.path)
