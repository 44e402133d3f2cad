"""What an agent wants to read on a target.

Sources are values: equal sources of several agents are read once. In a path, a pattern or an argument the
placeholders ``{ct}``, ``{init}``, ``{config}`` and ``{cgroup}`` stand for the container's name, the host pid of
its init, the path of its configuration on the host and its limit cgroup (below /sys/fs/cgroup, leading slash).
A `Script` gets the same four as shell variables ``$CT``, ``$INIT``, ``$CONFIG`` and ``$CGROUP``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

KIB = 1024


class Vantage(StrEnum):
    """From where a container is looked at. The two see different truths, so it is part of the source."""

    HOST = "host"  # on the target itself; for a container: on its host
    INSIDE = "inside"  # within the container, under its own device policy and name spaces


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    vantage: Vantage = Vantage.HOST
    root: bool = False
    """Only root gets an honest answer; without it the capture is a problem, not a short read."""
    limit: int = 256 * KIB
    """Bytes of output kept; what goes beyond is cut and the capture says so."""


@dataclass(frozen=True, slots=True)
class File(_Reading):
    """One file, read as it is."""

    path: str

    @property
    def key(self) -> str:
        """Names the source in snapshots: the same in every run, on every target."""
        return _prefixed(self.vantage, f"file:{self.path}")


@dataclass(frozen=True, slots=True)
class Glob(_Reading):
    """Many small text files in one go, by shell patterns (``*`` and ``?``), several separated by blanks.

    The capture's lines are ``path:text``; empty files do not appear.
    """

    pattern: str

    @property
    def key(self) -> str:
        """Names the source in snapshots: the same in every run, on every target."""
        return _prefixed(self.vantage, f"glob:{self.pattern}")


@dataclass(frozen=True, slots=True)
class Stat(_Reading):
    """File metadata, links not followed. One line per match of the blank-separated patterns:
    ``path|type|major hex|minor hex|mode octal|uid|gid`` with type as in stat's ``%F``.
    """

    patterns: str

    @property
    def key(self) -> str:
        """Names the source in snapshots: the same in every run, on every target."""
        return _prefixed(self.vantage, f"stat:{self.patterns}")


@dataclass(frozen=True, slots=True)
class Command(_Reading):
    """A command, run without a shell."""

    argv: tuple[str, ...]
    timeout: float = 10.0
    """Seconds, enforced on the target and again from here."""
    package: str = ""
    """The Debian package that brings it, for the hint when it is missing."""
    wakes_gpu: bool = False
    """As root it can load modules, create nodes or wake a GPU: runs last, and only where the driver is up."""

    @property
    def key(self) -> str:
        """Names the source in snapshots: the same in every run, on every target."""
        return _prefixed(self.vantage, f"command:{' '.join(self.argv)}")


@dataclass(frozen=True, slots=True)
class Script(_Reading):
    """A POSIX `sh` fragment for what no single file or command can answer. Read-only, without here-documents
    and without writing redirections; it must work in dash, bash and busybox ash.
    """

    name: str
    text: str
    timeout: float = 10.0
    """Seconds, enforced on the target and again from here."""
    wakes_gpu: bool = False
    """It runs something that can load modules, create nodes or wake a GPU: last, and only where the driver is up."""

    @property
    def key(self) -> str:
        """Names the source in snapshots: the same in every run, on every target."""
        return _prefixed(self.vantage, f"script:{self.name}")


Source = File | Glob | Stat | Command | Script


def _prefixed(vantage: Vantage, key: str) -> str:
    return f"inside:{key}" if vantage is Vantage.INSIDE else key
