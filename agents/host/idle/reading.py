"""From captures to the fact about idle states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gapline.agents.host.activity import ACTIVITY, Activity, Reading, activity, whole
from gapline.agents.host.boot_parameters import BOOT_PARAMETERS, boot_parameters
from gapline.agents.host.cpu.fact import Setting
from gapline.agents.host.cpu.processor import CPUINFO, processor
from gapline.agents.host.idle.fact import IdleGroup, IdleState, IdleStates, LatencyLimit
from gapline.agents.host.numa.cpu_list import ranges
from gapline.orchestrator.model.capture import Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Glob, Script, Source

_CPUIDLE = "/sys/devices/system/cpu/cpuidle"
# The governor's file is `current_governor_ro` on kernels that cannot switch it.
_DRIVER, _GOVERNORS = f"{_CPUIDLE}/current_driver", (f"{_CPUIDLE}/current_governor", f"{_CPUIDLE}/current_governor_ro")

SOURCES: dict[str, Source] = {
    "driver": Glob(" ".join((_DRIVER, *_GOVERNORS))),
    "activity": ACTIVITY,
    # Whoever holds the device open can demand something; who only reads it demands nothing (kernel/power/qos.c).
    "latency_limit": Script(
        name="cpu_latency_limit",
        root=True,
        text=r"""
[ -c /dev/cpu_dma_latency ] || exit 0
limit=$(od -An -td4 -N4 /dev/cpu_dma_latency) || exit 1
limit=${limit##* }
echo "limit $limit"
[ "$limit" = 2000000000 ] && exit 0
find /proc/[0-9]*/fd -maxdepth 1 -lname /dev/cpu_dma_latency 2>/dev/null | while IFS= read -r fd; do
  pid=${fd#/proc/}; pid=${pid%%/*}
  IFS= read -r name <"/proc/$pid/comm" && echo "holder $pid $name"
done
exit 0
""",
    ),
    "boot_parameters": BOOT_PARAMETERS,
    "cpuinfo": CPUINFO,
}


def read(captures: Captures) -> IdleStates:
    """The fact. Without root everything but the latency limit is there.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
    """
    driver, seen = captures.have("driver"), activity(captures.need("activity"))
    single = {path: lines[0] for path, lines in driver.files().items()} if driver else {}
    boot = boot_parameters(captures.need("boot_parameters"))
    cpus = _cpus(seen)
    return IdleStates(
        driver=_setting(single.get(_DRIVER)),
        governor=next((_setting(single[path]) for path in _GOVERNORS if path in single), None),
        processor=processor(captures.need("cpuinfo")),
        groups=tuple(_groups(seen, cpus)),
        window_seconds=round(seen.seconds, 2),
        counted=sum(any(seen.moved(f"{_state(cpu, n)}/usage") for n in numbers) for cpu, numbers in cpus.items()),
        limit=_limit(captures),
        cpu_limits=tuple(_cpu_limits(seen)),
        parameters=tuple(one for one in boot.in_force if one.name in _PARAMETERS),
    )


def _cpus(seen: Activity) -> dict[int, list[int]]:
    """The numbers of each CPU's states."""
    cpus: dict[int, list[int]] = {}
    for path, line in seen.still.items():
        if path.endswith("/latency"):
            found = _LATENCY.fullmatch(path)
            if found is None:
                raise ParseError(line.evidence, "the latency of an idle state")
            cpus.setdefault(int(found[1]), []).append(int(found[2]))
    return {cpu: sorted(cpus[cpu]) for cpu in sorted(cpus)}


def _groups(seen: Activity, cpus: Mapping[int, Sequence[int]]) -> Iterator[IdleGroup]:
    alike: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for cpu, numbers in cpus.items():
        kind = tuple(tuple(_attribute(seen, cpu, n, name).text for name in _ATTRIBUTES) for n in numbers)
        alike.setdefault(kind, []).append(cpu)
    for members in alike.values():
        states = tuple(_idle_state(seen, members, number) for number in cpus[members[0]])
        yield IdleGroup(cpus=ranges(members), states=states)


def _idle_state(seen: Activity, cpus: Sequence[int], number: int) -> IdleState:
    """Counters that do not rise, as across a hot-plug, count as nothing."""
    entries = {cpu: max(0, seen.moved(f"{_state(cpu, number)}/usage") or 0) for cpu in cpus}
    slept_us = sum(max(0, seen.moved(f"{_state(cpu, number)}/time") or 0) for cpu in cpus)
    entered = [cpu for cpu, count in entries.items() if count]
    shown = entered[0] if entered else cpus[0]
    latency, usage = _attribute(seen, shown, number, "latency"), f"{_state(shown, number)}/usage"
    counters = (seen.first[usage].evidence, seen.last[usage].evidence) if entered else ()
    name = _attribute(seen, cpus[0], number, "name")
    if _NAME.fullmatch(name.text) is None:
        raise ParseError(name.evidence, "the name of an idle state")
    return IdleState(
        number=number,
        name=name.text,
        latency_us=whole(latency),
        # Bit 0 is what somebody wrote, bit 1 that the driver switched it off (Documentation/ABI/testing, cpuidle).
        disabled=whole(_attribute(seen, cpus[0], number, "disable")) != 0,
        entries=sum(entries.values()),
        share=round(min(1.0, slept_us / 1e6 / (seen.seconds * len(cpus))), 4) if seen.seconds > 0 else 0.0,
        entered_on=ranges(entered),
        evidence=(latency.evidence, *counters),
    )


def _limit(captures: Captures) -> LatencyLimit | None:
    """Only root may look, and without it nothing else is less true."""
    problem = captures["latency_limit"].problem
    if problem is not None and problem.kind is ProblemKind.DENIED:
        return None
    capture = captures.have("latency_limit")
    if capture is None or not capture.out:
        return None
    first, *others = capture.lines()
    found = re.fullmatch(r"limit ([0-9]{1,10})", first.text, re.ASCII)
    if found is None:
        raise ParseError(first.evidence, "a latency in microseconds")
    return LatencyLimit(microseconds=int(found[1]), holders=tuple(_holders(others)), evidence=first.evidence)


def _holders(lines: Iterable[Line]) -> Iterator[str]:
    for line in lines:
        found = re.fullmatch(r"holder ([0-9]{1,10}) (.{0,15})", line.text)
        if found is None:
            raise ParseError(line.evidence, "a process that holds /dev/cpu_dma_latency")
        yield f"{found[2]} ({found[1]})"


def _cpu_limits(seen: Activity) -> Iterator[Setting]:
    """Each value that some CPU has, by its first line. `n/a` demands that the CPU does not sleep at all."""
    found = {one.text[:40]: one for path, one in reversed(tuple(seen.still.items())) if path.endswith(_CPU_LIMIT)}
    for value, one in found.items():
        yield Setting(value=value, evidence=one.evidence)


def _state(cpu: int, number: int) -> str:
    return f"cpu{cpu}/cpuidle/state{number}"


def _attribute(seen: Activity, cpu: int, number: int, name: str) -> Reading:
    path = f"{_state(cpu, number)}/{name}"
    if path not in seen.still:
        raise ParseError(seen.still[f"{_state(cpu, number)}/latency"].evidence, f"a state that has a {name}")
    return seen.still[path]


def _setting(line: Line | None) -> Setting | None:
    if line is None:
        return None
    if re.fullmatch(r"[\w.-]{1,40}", line.text, re.ASCII) is None:
        raise ParseError(line.evidence, "one word")
    return Setting(value=line.text, evidence=line.evidence)


_ATTRIBUTES = ("name", "latency", "disable")
_LATENCY = re.compile(r"cpu([0-9]{1,5})/cpuidle/state([0-9]{1,2})/latency", re.ASCII)
_NAME = re.compile(r"[\w. -]{1,40}", re.ASCII)
_CPU_LIMIT = "/power/pm_qos_resume_latency_us"
_PARAMETERS = frozenset({"idle", "cpuidle.off", "cpuidle.governor", "intel_idle.max_cstate", "processor.max_cstate"})
