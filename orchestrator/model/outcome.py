"""What an agent says about a target. "Could not look" is never "fine" and never a finding."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.problem import Problem


class Fact(BaseModel):
    """An agent's typed view of the machine. Units are in the field names or in the types.

    Its validator is built when it is first used: a command that runs one agent does not pay for all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Status(StrEnum):
    """The four answers, as they are written."""

    PASSED = "passed"
    FOUND = "found"
    NOT_APPLICABLE = "not_applicable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Passed:
    """Everything was seen and nothing is wrong."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Found:
    """Something is wrong. `unseen` lists what this agent could not see besides."""

    fact: Fact
    findings: tuple[Finding, ...]
    unseen: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The question does not arise on this target."""

    reason: str
    fact: Fact | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """It could not be seen, or not all of it, and what was seen holds no finding."""

    problem: Problem
    fact: Fact | None = None
    unseen: tuple[Problem, ...] = ()


Outcome = Passed | Found | NotApplicable | Unknown


def judged(fact: Fact, findings: tuple[Finding, ...], unseen: tuple[Problem, ...] = ()) -> Outcome:
    """The outcome that fits: found, else unknown when a part was not seen, else passed."""
    if findings:
        return Found(fact, findings, unseen)
    if unseen:
        return Unknown(unseen[0], fact, unseen)
    return Passed(fact)


def status(outcome: Outcome) -> Status:
    """How an outcome is written."""
    match outcome:
        case Passed():
            return Status.PASSED
        case Found():
            return Status.FOUND
        case NotApplicable():
            return Status.NOT_APPLICABLE
        case Unknown():
            return Status.UNKNOWN
