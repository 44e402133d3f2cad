"""What the log of a run says about the audit: one event per host, answer and reading that failed."""

from __future__ import annotations

import structlog

from gapline.orchestrator.audit.progress import AgentJudged, Event, HostFinished, HostStarted, TargetPlanned
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.outcome import Found, NotApplicable, Outcome, Unknown, status
from gapline.orchestrator.model.problem import Problem, ProblemKind

_log = structlog.get_logger("gapline.audit")


def log_event(event: Event) -> None:
    """Write what an observer is told; every line names its target."""
    match event:
        case HostStarted(host=host):
            _log.info("host.started", target=host)
        case TargetPlanned(target=target, agents=agents):
            _log.info("target.planned", target=target, agents=agents)
        case AgentJudged(target=target, agent=agent, outcome=outcome):
            write = _log.error if _is_defect(outcome) else _log.info
            write("agent.judged", target=target, agent=agent, status=status(outcome).value, **_about(outcome))
        case HostFinished(host=host, problem=None):
            _log.info("host.finished", target=host)
        case HostFinished(host=host, problem=problem):
            _log.warning("host.finished", target=host, **_told(problem))


def log_capture(capture: Capture) -> None:
    """Write why a reading failed. What is absent is part of the picture of a machine, and no event."""
    problem = capture.problem
    if problem is not None and problem.kind is not ProblemKind.MISSING:
        _log.info("source.unread", target=capture.target, source=capture.shown, **_told(problem))


def _about(outcome: Outcome) -> dict[str, object]:
    match outcome:
        case Found(findings=findings):
            return {"findings": [f"{finding.severity.value} {finding.code} {finding.subject}" for finding in findings]}
        case Unknown(problem=problem):
            return _told(problem)
        case NotApplicable(reason=reason):
            return {"reason": reason}
        case _:
            return {}


def _told(problem: Problem | None) -> dict[str, object]:
    return {"problem": problem.kind.value, "detail": problem.detail} if problem is not None else {}


def _is_defect(outcome: Outcome) -> bool:
    return isinstance(outcome, Unknown) and outcome.problem.kind is ProblemKind.DEFECT
