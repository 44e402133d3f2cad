"""From two readings of the counters to the load of the window between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.host.activity import Activity, Reading, activity
from gapline.agents.host.cpu.processor import processor
from gapline.agents.host.numa.cpu_list import ranges
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact

SHOWN_GROUPS = 8
_NEARLY_ALL = 0.9


class Stall(Fact):
    """How long within the window some, or all, tasks waited for one resource (Linux, accounting/psi.rst)."""

    resource: str  # "cpu", "io", "memory"
    some_share: float
    full_share: float
    evidence: tuple[Evidence, ...]


class GroupLoad(Fact):
    """A control group and the CPUs' worth of time that it used."""

    name: str  # "lxc/129", "qemu.slice/100.scope"
    cpus: float
    evidence: tuple[Evidence, ...]


class Load(Fact):
    """Shares are of the window and of all CPUs: 1 is everything."""

    window_seconds: float
    cpus: int
    busy_share: float
    wait_share: float  # idle with input or output outstanding
    steal_share: float  # runnable while the hypervisor ran something else
    busy_cpus: str  # those that were busy for nine tenths of the window and more: "0-3"
    stalls: tuple[Stall, ...]  # empty: this kernel does not measure them
    groups: tuple[GroupLoad, ...]  # the busiest first
    virtual: bool
    evidence: tuple[Evidence, ...]  # the CPUs' sums before and after


class CpuTime(Fact):
    """Of one CPU, or of all, within the window; in ticks."""

    busy: int
    wait: int
    steal: int
    total: int


def read(captures: Captures) -> Load:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
    """
    seen = activity(captures.need("activity"))
    whole, each = cpu_times(seen)
    total = max(1, whole.total)
    busy = [cpu for cpu, time in each.items() if time.busy >= _NEARLY_ALL * max(1, time.total)]
    groups = sorted(_groups(seen), key=lambda group: (-group.cpus, group.name))
    return Load(
        window_seconds=round(seen.seconds, 2),
        cpus=len(each),
        busy_share=round(whole.busy / total, 4),
        wait_share=round(whole.wait / total, 4),
        steal_share=round(whole.steal / total, 4),
        busy_cpus=ranges(sorted(busy)),
        stalls=tuple(_stalls(seen)),
        groups=tuple(groups[:SHOWN_GROUPS]),
        virtual=processor(captures.need("cpuinfo")).virtual is not None,
        evidence=(seen.first[_ALL].evidence, seen.last[_ALL].evidence),
    )


def cpu_times(seen: Activity) -> tuple[CpuTime, dict[int, CpuTime]]:
    """Of all CPUs together, and of each that was online at both ends.

    Raises:
        ParseError: /proc/stat has another form.
    """
    if _ALL not in seen.first or _ALL not in seen.last:
        raise ParseError(next(iter(seen.first.values()), _nothing(seen)).evidence, "the sums of /proc/stat")
    each: dict[int, CpuTime] = {}
    for name in seen.first.keys() & seen.last.keys():
        found = re.fullmatch(r"/proc/stat:cpu([0-9]{1,5})", name, re.ASCII)
        if found:
            each[int(found[1])] = _time(seen.first[name], seen.last[name])
    return _time(seen.first[_ALL], seen.last[_ALL]), each


def _nothing(seen: Activity) -> Reading:
    return next(iter(seen.last.values()), seen.mark)


def _time(first: Reading, last: Reading) -> CpuTime:
    """Fields: user nice system idle iowait irq softirq steal; guests' time is in user (Linux, filesystems/proc.rst).

    Counts that fall, as iowait's can, are taken for no change.
    """
    before, after = _ticks(first), _ticks(last)
    user, nice, system, idle, wait, irq, soft, steal = (max(0, b - a) for a, b in zip(before, after, strict=True))
    busy = user + nice + system + irq + soft
    return CpuTime(busy=busy, wait=wait, steal=steal, total=busy + idle + wait + steal)


def _ticks(reading: Reading) -> list[int]:
    _, *values = reading.text.split()
    if len(values) < _FIELDS or not all(re.fullmatch(r"[0-9]{1,20}", value, re.ASCII) for value in values):
        raise ParseError(reading.evidence, "the times of a CPU")
    return [int(value) for value in values[:_FIELDS]]


def _stalls(seen: Activity) -> Iterator[Stall]:
    for resource in ("cpu", "io", "memory"):
        names = [f"/proc/pressure/{resource}:{kind}" for kind in ("some", "full")]
        ends = [(seen.first[name], seen.last[name]) for name in names if name in seen.first and name in seen.last]
        if not ends:
            continue
        shares = [round((_stalled(last) - _stalled(first)) / 1e6 / max(0.01, seen.seconds), 4) for first, last in ends]
        evidence = tuple(one.evidence for pair in ends for one in pair)
        yield Stall(resource=resource, some_share=shares[0], full_share=shares[-1], evidence=evidence)


def _stalled(reading: Reading) -> int:
    found = re.search(r" total=([0-9]{1,18})$", reading.text, re.ASCII)
    if found is None:
        raise ParseError(reading.evidence, "microseconds stalled in all")
    return int(found[1])


def _groups(seen: Activity) -> Iterator[GroupLoad]:
    """Of groups two levels deep: containers, virtual machines, services and users."""
    for name, first in seen.first.items():
        found = _GROUP.fullmatch(name)
        last = seen.last.get(name)
        if found is None or last is None:
            continue
        used = (_used(last) - _used(first)) / 1e6 / max(0.01, seen.seconds)
        if used >= _SHOWN_FROM:
            yield GroupLoad(name=found[1], cpus=round(used, 2), evidence=(first.evidence, last.evidence))


def _used(reading: Reading) -> int:
    found = re.fullmatch(r"usage_usec ([0-9]{1,18})", reading.text, re.ASCII)
    if found is None:
        raise ParseError(reading.evidence, "microseconds used by a control group")
    return int(found[1])


_ALL = "/proc/stat:cpu"
_FIELDS = 8
_SHOWN_FROM = 0.05
_GROUP = re.compile(r"/sys/fs/cgroup/(?:unified/)?([^/]{1,200}/[^/]{1,200})/cpu\.stat:usage_usec")
