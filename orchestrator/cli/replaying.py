"""A stored snapshot, judged again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from gapline.orchestrator.audit.entries import NAMED
from gapline.orchestrator.cli.auditing import audit_into
from gapline.orchestrator.cli.selection import Selection, plan_of
from gapline.orchestrator.inventory.host import ContainerEntry, Host, Reach
from gapline.orchestrator.model.run import TargetEntry
from gapline.orchestrator.snapshot import Snapshot, read


def replay_into(out: Path | None, path: Path, selection: Selection, *, as_json: bool) -> int:
    """Judge it into a new run; the exit code.

    Raises:
        SnapshotError: it is damaged, too new, or no snapshot.
    """
    snapshot = read(path)
    plan = plan_of(selection, replayed_hosts(snapshot))
    return audit_into(out, plan, None, as_json=as_json, synthetic=snapshot.synthetic)


def replayed_hosts(snapshot: Snapshot) -> tuple[Host, ...]:
    """The hosts of a snapshot, with the containers that were declared when it was made."""
    entries = {target: _entry(snapshot.about(target)) for target in snapshot.targets}
    hosts = [target for target in snapshot.targets if "/" not in target]
    return tuple(_host(snapshot, host, entries) for host in hosts)


def _host(snapshot: Snapshot, name: str, entries: Mapping[str, TargetEntry | None]) -> Host:
    named = tuple(
        ContainerEntry(name=target.partition("/")[2])
        for target, entry in entries.items()
        if target.startswith(f"{name}/") and entry is not None and entry.reason.startswith(NAMED)
    )
    own = entries[name]
    return Host(
        name=name,
        address=str(snapshot.path),
        reach=Reach.REPLAY,
        declared=named,
        labels=own.labels if own is not None else (),
        snapshot=snapshot.path,
        recorded_skew=own.clock_skew_seconds if own is not None else None,
    )


def _entry(about: Mapping[str, object]) -> TargetEntry | None:
    """What the audit wrote about a target; None where a person made the snapshot by hand."""
    try:
        return TargetEntry.model_validate(about)
    except ValidationError:
        return None
