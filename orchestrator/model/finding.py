"""A finding: what is wrong, how sure that is, what it costs, and what to do."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from gapline.orchestrator.model.evidence import Evidence


class Severity(StrEnum):
    """How much it matters. `critical`: work is blocked or data is at risk."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for critical, rising with harmlessness: sorts findings worst first."""
        return list(Severity).index(self)


class Effect(StrEnum):
    """On what the claim of harm rests."""

    BREAKS = "breaks"  # it is known to stop the work
    MEASURED = "measured"  # on this machine, in ms or MB/s
    DOCUMENTED = "documented"  # a vendor, kernel or engine document, or a public reproducible report: see origin
    PLAUSIBLE = "plausible"  # not settled: `settled_by` names what would settle it


class Confidence(StrEnum):
    """`verified`: the thing itself was observed. `inferred`: it follows from what was observed."""

    VERIFIED = "verified"
    INFERRED = "inferred"


class Risk(StrEnum):
    """What applying a remedy can cost."""

    R0 = "R0"  # read-only
    R1 = "R1"  # live and reversible
    R2 = "R2"  # restarts a container
    R3 = "R3"  # reboots the host
    R4 = "R4"  # trades security


class Remedy(BaseModel):
    """What to do. Gapline applies nothing; every field is for the person who does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    now: str  # the quickest repair, as commands where possible
    lasting: str  # how it survives restarts, reboots and upgrades
    undo: str  # how to go back
    cost: str  # what it costs: power, isolation, downtime
    risk: Risk
    restarts: str  # what must restart for it to apply; "nothing" if nothing
    verify_agent: str  # the agent to run again afterwards
    diff: str = ""  # a unified diff of the file to change, where one file is the cause
    commands: tuple[str, ...] = ()  # `now` as exact lines for root's shell on the host, where it is that and no choice


class Finding(BaseModel):
    """One thing found on one subject of a target."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    subject: str  # what on the target: a device, a limit, a policy; part of the fingerprint, so stable
    severity: Severity
    title: str
    observed: str
    expected: str
    effect: Effect
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    remedy: Remedy
    base_severity: Severity | None = None  # before the context changed it
    severity_reason: str = ""  # why the context changed it
    origin: str = ""  # of a documented effect: the document or report
    settled_by: str = ""  # of a plausible effect: the benchmark that would settle it

    @model_validator(mode="after")
    def _claims_are_backed(self) -> Self:
        if self.effect is Effect.DOCUMENTED and not self.origin:
            raise ValueError(f"{self.code}: a documented effect names its origin")
        if self.effect is Effect.PLAUSIBLE:
            if not self.settled_by:
                raise ValueError(f"{self.code}: a plausible effect names the benchmark that would settle it")
            if self.severity.rank < Severity.MEDIUM.rank:
                raise ValueError(f"{self.code}: a plausible effect is at most medium")
        if self.base_severity is not None and self.base_severity is not self.severity and not self.severity_reason:
            raise ValueError(f"{self.code}: a changed severity has a reason")
        return self


def fingerprint(target: str, code: str, subject: str) -> str:
    """Names the same finding in every run: 16 hexadecimal digits over target, code and subject."""
    return sha256(f"{target}\0{code}\0{subject}".encode()).hexdigest()[:16]
