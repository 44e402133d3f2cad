"""Looks into a run."""

from __future__ import annotations

from gapline.orchestrator.merger import in_order
from gapline.orchestrator.model.run import OutcomeEntry, ReportedFinding, Run


def findings(run: Run, target: str | None = None) -> tuple[ReportedFinding, ...]:
    """All findings, or those of one target, the worst first."""
    return tuple(in_order(one for entry in run.outcomes if target in (None, entry.target) for one in entry.findings))


def codes(run: Run, target: str | None = None) -> list[str]:
    """The codes of the findings, the worst first."""
    return [finding.code for finding in findings(run, target)]


def outcome(run: Run, target: str, agent: str) -> OutcomeEntry:
    """What an agent said about a target."""
    return next(entry for entry in run.outcomes if (entry.target, entry.agent) == (target, agent))


def of_host(run: Run, host: str) -> list[OutcomeEntry]:
    """What all agents said about a host and its containers."""
    return [entry for entry in run.outcomes if entry.target.partition("/")[0] == host]


def fact(run: Run, target: str, agent: str) -> str:
    """An agent's fact as it goes into the run."""
    return outcome(run, target, agent).model_dump_json(include={"fact"})
