"""All hosts of a plan side by side, each judged, kept and dropped as soon as it is done."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic

import anyio
import structlog

from gapline import __version__
from gapline.orchestrator.analyse import defect
from gapline.orchestrator.audit.entries import host_entry
from gapline.orchestrator.audit.host_audit import AuditedTarget, Connect, HostAudit
from gapline.orchestrator.audit.log import log_event
from gapline.orchestrator.audit.progress import Event, HostFinished, Observe
from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.judged import Judged
from gapline.orchestrator.merger import merge, outcome_entry, settled
from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.model.outcome import Unknown
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import Header, OutcomeEntry, Run, TargetEntry
from gapline.orchestrator.plan import Plan
from gapline.orchestrator.snapshot import SnapshotWriter

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a run says about itself besides its plan."""

    synthetic: bool = False
    snapshot: str | None = None  # where the captures are kept, as the run will name it


async def audit(
    plan: Plan,
    connect: Connect,
    *,
    keep: SnapshotWriter | None,
    circumstances: Circumstances,
    observe: Observe = lambda _: None,
) -> Run:
    """Audit all hosts and merge what they said.

    `connect` opens the route to a host; `keep` takes the captures of each target as soon as it is done. An error of
    one host is that host's problem; only cancellation and a full disk end the audit.

    Raises:
        SnapshotError: the captures cannot be written.
        ConfigError: the user's ssh_config cannot be read.
    """
    started, origin = datetime.now(UTC), monotonic()  # noqa: TID251 - the edge: a run says when it was made
    of_host: dict[str, list[tuple[TargetEntry, list[OutcomeEntry]]]] = {}
    index = 0 if circumstances.snapshot is not None else None

    def tell(event: Event) -> None:
        log_event(event)
        observe(event)

    async def one(host: Host) -> None:
        results = await _host(plan, host, connect, lambda: monotonic() - origin, tell)
        of_host[host.name] = [_written(result, keep, index) for result in results]

    async with anyio.create_task_group() as tasks:
        for host in plan.hosts:
            tasks.start_soon(one, host)
    if keep is not None:
        keep.finish()
    in_plan_order = [pair for host in plan.hosts for pair in of_host[host.name]]
    return merge(
        Header(
            id=f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
            started=started,
            finished=datetime.now(UTC),  # noqa: TID251 - as above
            gapline=__version__,
            playbook=plan.playbook,
            fail_on=plan.fail_on.value if plan.fail_on is not None else "none",
            synthetic=circumstances.synthetic,
            snapshots=(circumstances.snapshot,) if circumstances.snapshot is not None else (),
        ),
        [target for target, _ in in_plan_order],
        [outcome for _, outcomes in in_plan_order for outcome in outcomes],
    )


async def _host(
    plan: Plan, host: Host, connect: Connect, clock: Callable[[], float], observe: Observe
) -> tuple[AuditedTarget, ...]:
    try:
        return await HostAudit(plan, host, connect, clock, observe).run()
    except ConfigError:
        raise  # nobody's fault but the user's, and the same for all hosts
    except Exception as error:  # noqa: BLE001 - a bug that one host brings out must not end the others' audit
        _log.exception("host.defect", target=host.name)
        problem = Problem(
            kind=ProblemKind.DEFECT,
            detail=f"{host.name}: {type(error).__name__}: {str(error)[:300]}",
            hint="This is a bug of ours, not of the machine. The log of the run has the traceback; please report it.",
        )
        observe(HostFinished(host.name, problem))
        return (AuditedTarget(host_entry(host, None, None, None, problem), (), None),)


def _written(
    result: AuditedTarget, keep: SnapshotWriter | None, index: int | None
) -> tuple[TargetEntry, list[OutcomeEntry]]:
    """The target as it goes into the run; its captures go to the snapshot and are dropped."""
    if keep is not None and result.captures is not None:
        keep.write(result.entry.id, result.captures.values(), result.entry.model_dump(mode="json"))
    return result.entry, [_entry(judged, index) for judged in settled(result.judged)]


def _entry(judged: Judged, index: int | None) -> OutcomeEntry:
    """The outcome as it goes into the run. A fact that is no JSON is its agent's bug, and nobody else's."""
    try:
        return outcome_entry(judged, index)
    except Exception as error:  # noqa: BLE001 - facts are third parties' models
        _log.exception("agent.defect", target=judged.target, agent=judged.agent.id)
        return outcome_entry(replace(judged, outcome=Unknown(defect(judged.agent.id, error))), index)
