"""Every error Gapline raises on purpose.

::

    AuditError                     a stable code, a hint what to do, the evidence
    ├── ConfigError                the user's files or arguments; exit 2, before any connection
    ├── PlanError                  what was asked for cannot be planned; exit 2
    ├── TransportError             a target could not be reached, or was lost
    │   ├── NameNotResolved
    │   ├── ConnectionRefused
    │   ├── ConnectTimedOut
    │   ├── HostKeyUnknown
    │   ├── HostKeyChanged
    │   ├── HostKeyRevoked
    │   ├── AuthenticationFailed
    │   ├── ProtocolFailed         it answers, but not as an SSH server should
    │   ├── SessionRefused         no further session on this connection for now
    │   └── ConnectionDropped
    ├── CollectError               one source could not be read; holds the typed problem
    ├── ParseError                 output of a form its parser does not know
    ├── NotApplicableError         an agent's question does not arise on this target
    ├── SnapshotError              a stored snapshot or run is damaged, foreign or too new
    ├── StoreError                 the history store
    └── DefectError                a bug of ours; exit 4

Transport, collect and parse errors cross the fan-out as values: one bad host never cancels the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.problem import Problem, ProblemKind


class AuditError(Exception):
    """Root of all deliberate errors. `str()` is one line for people; `hint` says what to do about it."""

    code: ClassVar[str] = "audit"
    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(AuditError):
    """One or several faults in a file or an argument, each with its place. `faults` holds all of them."""

    code = "config"
    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        line: int | None = None,
        column: int | None = None,
        hint: str = "",
    ) -> None:
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}" if place else message, hint=hint)
        self.path, self.line, self.column = path, line, column
        self.faults: tuple[ConfigError, ...] = (self,)

    @classmethod
    def together(cls, faults: tuple[ConfigError, ...]) -> ConfigError:
        """One error that carries all faults of a file, so that nobody has to fix them one run at a time."""
        if len(faults) == 1:
            return faults[0]
        whole = cls("\n".join(str(fault) for fault in faults), hint=faults[0].hint)
        whole.faults = faults
        return whole


class PlanError(AuditError):
    """A target, agent or combination that does not exist or makes no sense."""

    code = "plan"
    exit_code = 2


class TransportError(AuditError):
    """A target was not reached or was lost; `evidence` is what the library or the server said."""

    code = "transport"

    def __init__(self, target: str, message: str, *, hint: str = "", evidence: str = "") -> None:
        super().__init__(f"{target}: {message}", hint=hint)
        self.target, self.evidence = target, evidence

    @property
    def problem(self) -> Problem:
        """The same as a value, for everything that was to be read there."""
        return Problem(kind=ProblemKind.UNREACHED, detail=str(self), hint=self.hint)


class NameNotResolved(TransportError):
    """The address is a name that does not resolve."""

    code = "transport.name"


class ConnectionRefused(TransportError):
    """Nothing listens there, or a firewall says so."""

    code = "transport.refused"


class ConnectTimedOut(TransportError):
    """No answer within the connect time-out."""

    code = "transport.timeout"


class HostKeyUnknown(TransportError):
    """The host is in no known_hosts file that applies."""

    code = "transport.key_unknown"


class HostKeyChanged(TransportError):
    """The host offers another key than the known one."""

    code = "transport.key_changed"


class HostKeyRevoked(TransportError):
    """The host offers a key that is marked as revoked."""

    code = "transport.key_revoked"


class AuthenticationFailed(TransportError):
    """The server accepts none of the keys or passwords that were offered."""

    code = "transport.authentication"


class ProtocolFailed(TransportError):
    """The peer does not speak SSH as it should, or refuses what every server grants."""

    code = "transport.protocol"


class SessionRefused(TransportError):
    """The server grants no further session on this connection for now (OpenSSH: MaxSessions)."""

    code = "transport.sessions"


class ConnectionDropped(TransportError):
    """The connection ended while it was in use."""

    code = "transport.dropped"

    @property
    def problem(self) -> Problem:
        """The same as a value."""
        return Problem(kind=ProblemKind.DROPPED, detail=str(self), hint=self.hint)


class CollectError(AuditError):
    """One source on one target could not be read; `problem` says why."""

    code = "collect"

    def __init__(self, target: str, source: str, problem: Problem) -> None:
        super().__init__(f"{target}: {source}: {problem.detail}", hint=problem.hint)
        self.target, self.source, self.problem = target, source, problem


class ParseError(AuditError):
    """Output that its parser does not know. Never a guess, never a traceback: the outcome is unknown."""

    code = "parse"

    def __init__(self, at: Evidence, expected: str) -> None:
        super().__init__(f"{at.source}:{at.line or 1}: expected {expected}, got {at.text[:120]!r}")
        self.at, self.expected = at, expected

    @property
    def problem(self) -> Problem:
        """The same as a value."""
        return Problem(
            kind=ProblemKind.UNREADABLE,
            detail=str(self),
            hint="The format is new to this version. Please report it with this line.",
        )


class NotApplicableError(AuditError):
    """Raised by an agent's parse: its question does not arise on this target. The message is the reason."""

    code = "not_applicable"


class SnapshotError(AuditError):
    """A stored snapshot or run cannot be used as it is."""

    code = "snapshot"
    exit_code = 2


class StoreError(AuditError):
    """The history store cannot be used."""

    code = "store"
    exit_code = 2


class DefectError(AuditError):
    """A bug of ours."""

    code = "defect"
    exit_code = 4
