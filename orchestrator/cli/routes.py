"""Which route leads to a host: the composition of the transports."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path

import anyio.to_thread
import click

from gapline.orchestrator.audit.host_audit import Connect
from gapline.orchestrator.inventory.host import Host, Reach
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import DefectError
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.run_log import quiet_unless_logged
from gapline.orchestrator.snapshot import Snapshot, read
from gapline.orchestrator.transport.local import LocalRoute
from gapline.orchestrator.transport.replay import ReplayRoute
from gapline.orchestrator.transport.route import Route
from gapline.orchestrator.transport.ssh.dialer import Dialer

Ways = Callable[[], AbstractAsyncContextManager[Connect]]
"""Opens what the connections of one run share."""


class TerminalPrompts:
    """Asks the person at the terminal for passphrases and passwords. Nothing is kept."""

    async def ask(self, question: str, *, echo: bool) -> str | None:
        """The answer; None when it was empty or the person pressed Ctrl-C."""

        def prompt() -> str | None:
            try:
                return (
                    str(click.prompt(question, hide_input=not echo, default="", show_default=False, err=True)) or None
                )
            except click.Abort:
                return None

        return await anyio.to_thread.run_sync(prompt, abandon_on_cancel=True)


def dialer() -> Dialer:
    """A dialer that asks questions if somebody is there to answer them."""
    quiet_unless_logged()
    return Dialer(prompts=TerminalPrompts() if sys.stdin.isatty() and sys.stderr.isatty() else None)


@asynccontextmanager
async def routes() -> AsyncIterator[Connect]:
    """How to reach hosts by whatever route they have; connections that several hosts share are closed at the end."""
    async with dialer() as by_ssh:

        async def connect(host: Host) -> Route:
            match host.reach:
                case Reach.SSH:
                    return await by_ssh.connect(host)
                case Reach.LOCAL:
                    return LocalRoute(host.name)
                case Reach.REPLAY:
                    return _replay(host)

        yield connect


def ssh_warnings(hosts: Iterable[Host]) -> tuple[str, ...]:
    """What the user's ssh_config asks for and will not happen, each once.

    Raises:
        ConfigError: a configuration file cannot be read.
    """
    asking = Dialer()
    return tuple(
        dict.fromkeys(warning for host in hosts if host.reach is Reach.SSH for warning in asking.warnings(host))
    )


_NOT_ASKED = "the snapshot does not hold it: it was made by other agents than today's"


def _replay(host: Host) -> Route:
    if host.snapshot is None:
        raise DefectError(f"{host.name} is to be replayed from nowhere")
    snapshot = _opened(host.snapshot)

    @cache
    def captures(target: str) -> dict[str, Capture]:
        return dict(snapshot.captures(target)) if target in snapshot.targets else {}

    def lookup(target: str, key: str) -> Capture | None:
        """A source that the snapshot does not hold was not asked for then: nobody knows what it would have said."""
        known = captures(target)
        if key in known or not known:
            return known.get(key)
        return Capture(target, key, key, problem=Problem(kind=ProblemKind.UNSEEN, detail=_NOT_ASKED))

    return ReplayRoute(host.name, lookup)


@cache
def _opened(path: Path) -> Snapshot:
    return read(path)
