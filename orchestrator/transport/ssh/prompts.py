"""Questions to the person at the terminal: passphrases, passwords, codes. Answers are never stored or logged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import anyio

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Prompts(Protocol):
    """Someone who can be asked. Given only where a person sits at a terminal."""

    async def ask(self, question: str, *, echo: bool) -> str | None:
        """The answer, or None when the person declines. `echo` False hides what is typed."""


class Asker:
    """Asks one question at a time, however many hosts wait."""

    def __init__(self, prompts: Prompts | None) -> None:
        self._prompts = prompts
        self._turn = anyio.Lock()

    def __bool__(self) -> bool:
        return self._prompts is not None

    async def ask(self, question: str, *, echo: bool = False) -> str | None:
        """Ask when it is our turn. Servers choose part of the text: control characters do not reach the terminal."""
        if self._prompts is None:
            return None
        async with self._turn:
            return await self._prompts.ask(_CONTROL.sub(" ", question)[:300].strip(), echo=echo)


class LoginClock:
    """The time that one login may take. It stands still while a person is asked."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)

    def stop(self) -> None:
        """A person has to answer first."""
        self.scope.deadline = float("inf")

    def start(self) -> None:
        """The person has answered: the server gets its full time again."""
        self.scope.deadline = anyio.current_time() + self._seconds


@dataclass(frozen=True, slots=True)
class Waiting:
    """Who may be asked during a login, and the clock to stop meanwhile."""

    asker: Asker
    clock: LoginClock
