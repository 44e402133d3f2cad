"""From exit status, standard error and duration to a typed problem. Pure, and never a guess about health."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from gapline.orchestrator.collect.group import seconds
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat

if TYPE_CHECKING:
    from gapline.orchestrator.collect.frames import Frame

_MISSING = ("No such file or directory", "No such process", "Not a directory")
_DENIED = ("Permission denied", "Operation not permitted")
SUDO_REFUSAL = re.compile(
    r"sudo: (?:a password is required|sorry, you must have a tty|a terminal is required)|"
    r"Sorry, user .* is not allowed|is not in the sudoers|may not run sudo"
)
# What shells say about a child that a signal ended: dash and busybox `Killed`, bash `main: line 9:  12 Killed  "$@"`.
# It says nothing about the source.
_SHELL_NOISE = re.compile(rb"(?m)^(?:\S+: line \d+:\s+\d+ )?(?:Killed|Terminated)\b(?:\s+\"\$@\".*)?\s*(?:\n|\Z)")
_TIMED_OUT_STATUS = {"124", "137", "143"}  # coreutils, KILL, TERM
_CUT_STATUS = {"0", "1", "141"}  # the writer of a cut pipe ends by SIGPIPE, or reports EPIPE


def stderr(frame: Frame) -> bytes:
    """Standard error without the shells' remarks about ended children."""
    return _SHELL_NOISE.sub(b"", frame.err) if frame.err else b""


def exit_status(frame: Frame) -> int | None:
    """The exit status, None when the source was not run or did not end."""
    return int(frame.status) if frame.status and frame.status.isdecimal() and len(frame.status) < 5 else None  # noqa: PLR2004


def diagnose(source: Source, frame: Frame) -> Problem | None:
    """What kept a finished item from being complete, or None."""
    if frame.problem:
        return _told(frame.problem)
    status = frame.status or ""
    if not status.isdecimal():
        return _by_word(source, status)
    if status == "0" and not isinstance(source, Glob | Stat):
        return None
    return _by_status(source, frame, status)


def _by_status(source: Source, frame: Frame, status: str) -> Problem | None:
    error = stderr(frame).decode("utf-8", "backslashreplace").strip()
    if _timed_out(source, frame):
        return timed_out(f"did not end within {seconds(source)} s")
    if source.root and SUDO_REFUSAL.search(error):
        return sudo_refused(error, "`gapline plan --sudoers` prints the lines that allow exactly these reads.")
    match source:
        case Command() | Script():
            return _program(source, status, error, cut=frame.truncated)
        case File():
            return _refused(error) or _missing(error) or _failed(status, error)
        case Glob() | Stat():
            return _several(frame, error)


def timed_out(detail: str, hint: str = "") -> Problem:
    """Time ran out, here or on the target."""
    return Problem(kind=ProblemKind.TIMED_OUT, detail=detail, hint=hint)


def dropped(detail: str) -> Problem:
    """The lane ended before the answer did."""
    return Problem(
        kind=ProblemKind.DROPPED, detail=detail, hint="Run it again; if it happens at the same place, report it."
    )


def sudo_refused(said: str, hint: str) -> Problem:
    """Sudo did not let us."""
    return Problem(kind=ProblemKind.DENIED, detail=first_line(said), hint=hint)


def root_needed() -> Problem:
    """We are not root, and nobody else gets an honest answer."""
    return _by_word(File("/"), "d")


def withheld() -> Problem:
    """It could wake a driver that is not up, so it is not run."""
    return _by_word(File("/"), "w")


def first_line(text: str) -> str:
    """The first line, cut for messages."""
    return text.strip().split("\n", 1)[0][:300]


def _by_word(source: Source, status: str) -> Problem:
    if status not in _BY_WORD:
        return Problem(kind=ProblemKind.UNREADABLE, detail=f"the target gave the exit status {status[:40]!r}")
    kind, detail, hint = _BY_WORD[status]
    return Problem(kind=kind, detail=detail.format(seconds=seconds(source)), hint=hint)


_BY_WORD = {
    "a": (
        ProblemKind.TIMED_OUT,
        "did not end within {seconds} s and could not be killed: it is stuck in the kernel",
        "Look for processes in state D and at the kernel log; a lost GPU does this.",
    ),
    "d": (
        ProblemKind.DENIED,
        "only root gets an honest answer here, and we are not root",
        "Log in as root or set `become: sudo` (or `sudo_reads`) for this host.",
    ),
    "n": (ProblemKind.FAILED, "is not a regular file", ""),
    "w": (
        ProblemKind.WITHHELD,
        "not run: the NVIDIA driver is not up here, and looking could load it or create nodes",
        "Run again with --allow-init if that is wanted.",
    ),
}


def _told(text: str) -> Problem:
    """A problem as a replayed snapshot tells it."""
    try:
        return Problem.model_validate_json(unquote(text))
    except ValueError:
        return Problem(kind=ProblemKind.UNREADABLE, detail="the target told of a problem that cannot be read")


def _timed_out(source: Source, frame: Frame) -> bool:
    """By status and duration together; the clock has a grain of 10 ms."""
    return frame.status in _TIMED_OUT_STATUS and frame.seconds >= seconds(source) - 0.05


def _program(source: Command | Script, status: str, error: str, *, cut: bool) -> Problem | None:
    if cut and status in _CUT_STATUS:
        return None
    if status == "127" and isinstance(source, Command):
        hint = f"apt install {source.package}" if source.package else ""
        return Problem(kind=ProblemKind.COMMAND_MISSING, detail=f"{source.argv[0]} is not installed", hint=hint)
    return _refused(error) or _failed(status, error)


def _several(frame: Frame, error: str) -> Problem | None:
    """Patterns: what matches nothing is absent as long as anything else is there; what is denied always counts."""
    if denied := _refused(error):
        return denied
    if "Argument list too long" in error:
        return Problem(kind=ProblemKind.TOO_LARGE, detail="the patterns match more files than one command takes")
    if frame.out or not error:
        return None
    return _missing(error) or _failed(frame.status or "", error)


def _refused(error: str) -> Problem | None:
    line = _line_with(_DENIED, error)
    if line is None:
        return None
    return Problem(kind=ProblemKind.DENIED, detail=line, hint="Log in as root or set `become` for this host.")


def _missing(error: str) -> Problem | None:
    line = _line_with(_MISSING, error)
    return None if line is None else Problem(kind=ProblemKind.MISSING, detail=line)


def _failed(status: str, error: str) -> Problem:
    return Problem(kind=ProblemKind.FAILED, detail=first_line(error) or f"ended with exit status {status}")


def _line_with(phrases: tuple[str, ...], error: str) -> str | None:
    return next((line[:300] for line in error.split("\n") if any(phrase in line for phrase in phrases)), None)
