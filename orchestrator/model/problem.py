"""Why something could not be seen."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class ProblemKind(StrEnum):
    """The ways in which looking fails. None of them says anything about the machine's health."""

    MISSING = "missing"  # the file, or everything a pattern could match, is not there
    DENIED = "denied"  # permission or privilege is missing
    COMMAND_MISSING = "command_missing"
    TIMED_OUT = "timed_out"
    DROPPED = "dropped"  # the connection or the lane ended before the answer did
    TOO_LARGE = "too_large"
    FAILED = "failed"  # it answered with an error that none of the others names
    UNREADABLE = "unreadable"  # it answered with something its parser does not know
    NOT_RUNNING = "not_running"  # the container is stopped, or stopped meanwhile
    NOT_ENTERED = "not_entered"  # the container runs but lets nobody in: frozen, no shell, half dead
    WITHHELD = "withheld"  # we chose not to look: it could change the machine, or no flag allowed it
    UNREACHED = "unreached"  # the host was never reached
    DEFECT = "defect"  # a bug of ours kept it from being judged
    UNSEEN = "unseen"  # something this judgement needs could not be seen by another agent


class Problem(BaseModel):
    """One thing that could not be seen: what kind, in which words, and what would make it visible."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ProblemKind
    detail: str
    hint: str = ""
