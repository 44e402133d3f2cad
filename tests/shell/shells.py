"""The shells that stand in for targets: every way in which a lane may be run here."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.lane import Pace, run_lane
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.source import Source
from gapline.orchestrator.transport.local import LocalRoute
from gapline.orchestrator.transport.route import Channel, Receive, Stream
from tests.shell.busybox_root import BUSYBOX

SHELLS = {"dash": "dash -s", "bash": "bash --posix -s", "busybox": "/bin/busybox ash -s"}
"""By name: the command lines that read a script. Debian's busybox applets go before PATH in its shell."""

USERS = {"me": "", "nobody": "runuser -u nobody -- ", "sudo": "sudo -n "}
BUSYBOX_ROOT = Path(tempfile.gettempdir()) / f"gapline-busybox-root-{os.getpid()}"
ENTER = Path(__file__).with_name("busybox_root.py")


@dataclass(frozen=True, slots=True)
class Way:
    """A shell and the user it runs as."""

    shell: str
    user: str

    @property
    def reason(self) -> str:
        """Why it cannot be tried here; empty when it can."""
        if self.user == "chroot":
            return "" if os.geteuid() == 0 and Path(BUSYBOX).exists() else "needs root and busybox-static"
        program = SHELLS[self.shell].split()[0]
        if shutil.which(program) is None:
            return f"there is no {program}"
        if self.user != "me" and os.geteuid() != 0:
            return f"only root can run {USERS[self.user].split()[0]} unasked"
        return "" if self.user == "me" or shutil.which(USERS[self.user].split()[0]) else f"there is no {self.user}"

    @property
    def root(self) -> bool:
        """Whether it reads as root."""
        return self.user != "nobody" and os.geteuid() == 0

    @property
    def command(self) -> str:
        """The whole command line."""
        if self.user == "chroot":
            return f"exec unshare -m --propagation private {sys.executable} {ENTER} {BUSYBOX_ROOT}"
        return USERS[self.user] + SHELLS[self.shell]

    def __str__(self) -> str:
        return f"{self.shell}-{self.user}"


WAYS = [*(Way(shell, user) for shell in SHELLS for user in USERS), Way("busybox", "chroot")]


class ShellRoute(LocalRoute):
    """The local route, with a shell of our choice instead of whatever /bin/sh is."""

    def __init__(self, command: str) -> None:
        super().__init__("local")
        self._command = command
        self.received = 0

    async def open(self, command: str, receive: Receive) -> Channel:
        """Run our shell for every command that would run one."""
        assert command.endswith("sh -s")

        def counted(stream: Stream, data: bytes) -> None:
            self.received += len(data)
            receive(stream, data)

        return await super().open(self._command, counted)


async def collect(way: Way, items: Sequence[Item | Source], pace: Pace | None = None) -> list[Capture]:
    """One capture for each item, in the order of the items."""
    bound = [item if isinstance(item, Item) else Item("local", item) for item in items]
    captures: list[Capture] = []
    route = ShellRoute(way.command)
    error = await run_lane(route, bound, become=Become.NONE, deliver=captures.append, pace=pace)
    await route.close()
    assert error is None
    assert len(captures) == len(bound)
    by_key = {(capture.target, capture.source): capture for capture in captures}
    return [by_key[item.target, item.source.key] for item in bound]


def processes(word: str) -> list[int]:
    """Running processes with this word in their command line, zombies left out."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in line and int(path.name) != os.getpid():
            found.append(int(path.name))
    return found
