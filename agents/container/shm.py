"""Agent `container.shm`: is the shared memory that the engine's processes see there, in memory, and large enough?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container.shm_findings import AGENT_ID, CODES, shm_findings
from gapline.agents.container.shm_reading import SHM, ContainerShm, Shm, container_shm
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Source

__all__ = ["AGENT", "ContainerShm"]

SOURCES: Mapping[str, Source] = {"shm": SHM}


def parse(captures: Captures) -> ContainerShm:
    return container_shm(captures.need("shm"))


def judge(fact: ContainerShm, limits: Limits) -> Outcome:
    """What the CUDA processes see counts; the init's only where there are none."""
    views = [view for view in fact.views if view.cuda] or fact.views
    worst: dict[str, Finding] = {}
    for finding in (finding for view in views for finding in shm_findings(view, limits)):
        known = worst.setdefault(finding.code, finding)
        if finding.severity.rank < known.severity.rank:
            worst[finding.code] = finding
    return judged(fact, tuple(worst.values()), tuple(_unseen(views)))


def _unseen(views: tuple[Shm, ...] | list[Shm]) -> Iterator[Problem]:
    for view in views:
        if view.state in ("link", "unread"):
            yield Problem(
                kind=ProblemKind.UNSEEN,
                detail=f"the /dev/shm of {view.users[0]} "
                + ("is a link" if view.state == "link" else "could not be asked for its size"),
                hint="Look inside: `df -h /dev/shm`.",
            )


AGENT = Agent(
    id=AGENT_ID,
    title="Shared memory",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=ContainerShm,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
    limits=("advised_bytes", "tiny_bytes", "least_free_bytes"),
)
