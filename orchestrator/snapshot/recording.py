"""Recorded hosts that can be asked: snapshots laid over each other, each host also under the names of its copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import SnapshotError
from gapline.orchestrator.snapshot.reader import Snapshot


class Recording:
    """Captures by host, target and source. Every recorded target is read once, when it is first asked for.

    A capture of a later snapshot stands in for one of the same target and source in an earlier one, so that a small
    snapshot can hold what a repair changed. With `copies` a host `big` answers as `big-0001` … as well.
    """

    def __init__(self, snapshots: Sequence[Snapshot], *, copies: int = 0) -> None:
        self._snapshots = tuple(snapshots)
        recorded = {target: None for snapshot in snapshots for target in snapshot.targets if "/" not in target}
        self.hosts: Mapping[str, str] = {
            **{f"{host}-{number:04}": host for host in recorded for number in range(1, copies + 1)},
            **{host: host for host in recorded},
        }
        self._captures = cache(self._read)

    def capture(self, host: str, target: str, key: str) -> Capture | None:
        """What `host` has for a source on itself or on one of its containers; None for everything else."""
        name, slash, container = target.partition("/")
        if name != host or host not in self.hosts:
            return None
        return self._captures(self.hosts[host] + slash + container).get(key)

    def check(self) -> None:
        """Read everything now.

        Raises:
            SnapshotError: a target is damaged, or there is no host.
        """
        if not self.hosts:
            raise SnapshotError(f"{self._snapshots[0].path}: holds no host", hint="Give the snapshot of an audit.")
        for snapshot in self._snapshots:
            for target in snapshot.targets:
                self._captures(target)

    def _read(self, target: str) -> Mapping[str, Capture]:
        found: dict[str, Capture] = {}
        for snapshot in self._snapshots:
            if target in snapshot.targets:
                found |= snapshot.captures(target)
        return found
