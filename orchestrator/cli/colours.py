"""How severities and states look on a terminal."""

from __future__ import annotations

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.run import Verdict

SEVERITY = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "dim",
}
VERDICT = {
    Verdict.CLEARED: "green",
    Verdict.SUSPECT: "red",
    Verdict.NOT_TESTED: "magenta",
    Verdict.BOUNDED: "yellow",
}
