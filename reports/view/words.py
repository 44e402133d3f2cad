"""What the run's terms are called on paper."""

from __future__ import annotations

from collections.abc import Iterable

from gapline.orchestrator.model.finding import Confidence, Effect, Risk, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.run import OutcomeEntry, TargetKind, Verdict

LAYERS = {1: "Ceiling", 2: "System", 3: "Container", 4: "Communication", 5: "Kernels"}

VERDICTS = {
    Verdict.CLEARED: "cleared",
    Verdict.SUSPECT: "suspect",
    Verdict.NOT_TESTED: "not tested",
    Verdict.BOUNDED: "bounded",
}

STATUSES = {
    Status.FOUND: "found",
    Status.UNKNOWN: "unknown",
    Status.PASSED: "passed",
    Status.NOT_APPLICABLE: "not applicable",
}
"""In the order in which they ask for attention."""

KINDS = {
    TargetKind.PROXMOX_HOST: "Proxmox VE host",
    TargetKind.LINUX_HOST: "Linux host",
    TargetKind.LXC_CONTAINER: "LXC container",
    TargetKind.UNREACHED: "not reached",
}

PROBLEMS = {
    ProblemKind.MISSING: "not there",
    ProblemKind.DENIED: "permission missing",
    ProblemKind.COMMAND_MISSING: "command missing",
    ProblemKind.TIMED_OUT: "timed out",
    ProblemKind.DROPPED: "connection lost",
    ProblemKind.TOO_LARGE: "too large",
    ProblemKind.FAILED: "answered with an error",
    ProblemKind.UNREADABLE: "unknown format",
    ProblemKind.NOT_RUNNING: "not running",
    ProblemKind.NOT_ENTERED: "lets nobody in",
    ProblemKind.WITHHELD: "not looked at, on purpose",
    ProblemKind.UNREACHED: "host not reached",
    ProblemKind.DEFECT: "a bug, not the machine",
    ProblemKind.UNSEEN: "needs another answer first",
}

EFFECTS = {
    Effect.BREAKS: "stops the work",
    Effect.MEASURED: "measured on this machine",
    Effect.DOCUMENTED: "documented",
    Effect.PLAUSIBLE: "plausible, not measured",
}

CONFIDENCES = {
    Confidence.VERIFIED: "verified: the thing itself was observed",
    Confidence.INFERRED: "inferred: it follows from what was observed",
}

RISKS = {
    Risk.R0: "read-only",
    Risk.R1: "live and reversible",
    Risk.R2: "restarts a container",
    Risk.R3: "reboots the host",
    Risk.R4: "trades security",
}


def tone(entry: OutcomeEntry) -> str:
    """What colours an outcome: the severity of its worst open finding, else its status."""
    severities = (finding.severity for finding in entry.findings if not finding.waived)
    return min(severities, key=lambda severity: severity.rank, default=entry.status)


def worst(tones: Iterable[str]) -> str:
    """The tone of several outcomes together; of none, `unknown`."""
    order = [*Severity, Status.FOUND, Status.UNKNOWN, Status.PASSED, Status.NOT_APPLICABLE]
    return min(tones, key=order.index, default=Status.UNKNOWN)


def counted(count: int, one: str, many: str = "") -> str:
    """`1 finding`, `3 findings`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(names: tuple[str, ...], at_most: int = 4) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b, c, d and 12 more`."""
    shown = [*names[:at_most], f"{len(names) - at_most:,} more"] if len(names) > at_most + 1 else list(names)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
