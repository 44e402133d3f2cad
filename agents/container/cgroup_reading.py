"""A container's cgroup as a fact: limits and counters on the host's side, and what its own side shows of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gapline.agents.container.cgroup_files import (
    UNIFIED,
    Amount,
    Counter,
    Files,
    Pressure,
    amount,
    counters,
    folder,
    full_pressure,
    unified,
)
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Glob, Source

_NAMES = (
    *("cpu.stat", "cpu.max", "cpu.weight", "cpu.pressure", "io.max", "pids.max", "pids.current", "pids.events"),
    *("memory.max", "memory.high", "memory.current", "memory.swap.max", "memory.swap.current", "memory.stat"),
    *("memory.events", "memory.events.local", "memory.pressure"),
)
_ABOVE = ("memory.max", "memory.high", "cpu.max", "pids.max")
_INSIDE = ("memory.max", "cpu.max", "pids.max")

SOURCES: Mapping[str, Source] = {
    "unified": UNIFIED,
    # Proxmox VE limits `lxc/ID`; the container's root is `ns` below it, whose own files always say `max`.
    "cgroup": Glob(
        " ".join(
            (
                *(f"/sys/fs/cgroup{{cgroup}}/{name}" for name in _NAMES),
                *(f"/sys/fs/cgroup{{cgroup}}/../{name}" for name in _ABOVE),
                *(f"/sys/fs/cgroup{{cgroup}}/ns/{name}" for name in _INSIDE),
            )
        )
    ),
}
_QUOTA = re.compile(r"(max|[0-9]{1,15}) ([1-9][0-9]{0,9})")


class CpuQuota(Fact):
    """How many CPUs' worth of time each period brings; None is no quota."""

    cpus: float | None
    period_us: int
    evidence: Evidence


class CgroupLimits(Fact):
    """Limits and counters of the limit cgroup. A limit that is None is not there: its controller is off.

    `inside` are the values that the container's own root shows: namespace-relative, `max` though the host limits.
    """

    unified: bool
    folder: str = ""  # of the limit cgroup, on the host
    memory_max: Amount | None = None  # bytes
    memory_high: Amount | None = None
    memory_current: Amount | None = None
    swap_max: Amount | None = None
    swap_current: Amount | None = None
    memory_stat: dict[str, Counter] = {}  # noqa: RUF012  # pydantic copies defaults
    memory_events: dict[str, Counter] = {}  # noqa: RUF012
    memory_events_local: dict[str, Counter] = {}  # noqa: RUF012
    memory_pressure: Pressure | None = None
    cpu_quota: CpuQuota | None = None
    cpu_weight: Amount | None = None
    cpu_stat: dict[str, Counter] = {}  # noqa: RUF012
    cpu_pressure: Pressure | None = None
    pids_max: Amount | None = None
    pids_current: Amount | None = None
    pids_events: dict[str, Counter] = {}  # noqa: RUF012
    io_limits: tuple[Evidence, ...] = ()
    above: tuple[Evidence, ...] = ()  # limits of the cgroup above it, which hold for all containers together
    inside: tuple[Evidence, ...] = ()

    @property
    def name(self) -> str:
        """The container's name as LXC's commands take it."""
        return self.folder.rpartition("/")[2].removeprefix("lxc.payload.")

    @property
    def proxmox(self) -> bool:
        """The cgroup lies where Proxmox VE puts it, so `pct` knows the container."""
        return self.folder.startswith("/sys/fs/cgroup/lxc/") and self.name.isdecimal()

    @property
    def namespace_relative(self) -> bool:
        """The host limits memory or CPU time, and the container's own files say that nothing does."""
        limited = any(
            value is not None
            for value in (
                self.memory_max.value if self.memory_max else None,
                self.cpu_quota.cpus if self.cpu_quota else None,
            )
        )
        return limited and bool(self.inside) and all(at.text.startswith("max") for at in self.inside)


def read(captures: Captures) -> CgroupLimits:
    """The fact.

    Raises:
        CollectError: the cgroup could not be read.
        ParseError: a file has an unknown form.
    """
    if not unified(captures["unified"]):
        return CgroupLimits(unified=False)
    capture = captures.need("cgroup")
    files, at = capture.files(), folder(capture, "cpu.stat")
    if f"{at}/cpu.stat" not in files:
        raise ParseError(capture.first().evidence, "cpu.stat, which every cgroup has")
    fields: dict[str, Any] = {
        **{field: amount(files, f"{at}/{name}") for name, field in _AMOUNTS.items()},
        **{field: counters(files, f"{at}/{name}") for name, field in _TABLES.items()},
    }
    return CgroupLimits(
        unified=True,
        folder=at,
        **fields,
        memory_pressure=full_pressure(files, f"{at}/memory.pressure"),
        cpu_pressure=full_pressure(files, f"{at}/cpu.pressure"),
        cpu_quota=_quota(files, f"{at}/cpu.max"),
        io_limits=tuple(line.evidence for line in files.get(f"{at}/io.max", ())),
        above=tuple(at for at in _first(files, f"{at}/..", _ABOVE) if not at.text.startswith("max")),
        inside=_first(files, f"{at}/ns", _INSIDE),
    )


_AMOUNTS = {
    "memory.max": "memory_max",
    "memory.high": "memory_high",
    "memory.current": "memory_current",
    "memory.swap.max": "swap_max",
    "memory.swap.current": "swap_current",
    "cpu.weight": "cpu_weight",
    "pids.max": "pids_max",
    "pids.current": "pids_current",
}
_TABLES = {
    "memory.stat": "memory_stat",
    "memory.events": "memory_events",
    "memory.events.local": "memory_events_local",
    "cpu.stat": "cpu_stat",
    "pids.events": "pids_events",
}


def _first(files: Files, at: str, names: tuple[str, ...]) -> tuple[Evidence, ...]:
    return tuple(lines[0].evidence for name in names if (lines := files.get(f"{at}/{name}")))


def _quota(files: Files, path: str) -> CpuQuota | None:
    lines = files.get(path)
    if not lines:
        return None
    match = _QUOTA.fullmatch(lines[0].text.strip())
    if match is None:
        raise ParseError(lines[0].evidence, "a quota or 'max', and a period")
    period = int(match[2])
    cpus = None if match[1] == "max" else int(match[1]) / period
    return CpuQuota(cpus=cpus, period_us=period, evidence=lines[0].evidence)
