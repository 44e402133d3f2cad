"""How fast busy CPUs really ran: the fact, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median_low

from gapline.agents.host.activity import ACTIVITY, Activity, activity, whole
from gapline.agents.host.cpu.fact import Processor
from gapline.agents.host.cpu.processor import CPUINFO, processor
from gapline.agents.host.load_reading import cpu_times
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Glob, Source

# The processors' own sensors only: other drivers ask a disk or a management controller when they are read.
_PLACES = ("/sys/devices/platform/coretemp.*/hwmon/hwmon*", "/sys/bus/pci/drivers/k10temp/*/hwmon/hwmon*")
_VALUES = ("temp*_input", "temp*_crit", "temp*_label")

SOURCES: dict[str, Source] = {
    "activity": ACTIVITY,
    "cpuinfo": CPUINFO,
    "temperatures": Glob(" ".join(f"{place}/{value}" for place in _PLACES for value in _VALUES)),
}


class BusyCpu(Fact):
    """A CPU that was busy for nearly all of the window. The frequency is the median of the samples."""

    cpu: int
    busy_share: float
    mhz: int
    base_mhz: int | None  # what it runs at for as long as it likes; None where nothing says
    evidence: tuple[Evidence, ...]


class Throttle(Fact):
    """A counter of thermal throttling (Intel) that rose within the window."""

    cpu: int
    kind: str  # "core", "package"
    times: int
    evidence: tuple[Evidence, ...]


class Sensor(Fact):
    """A temperature of a processor."""

    label: str
    celsius: float
    critical_celsius: float | None  # where the processor protects itself; AMD's driver mostly gives none
    evidence: tuple[Evidence, ...]


class CpuSpeed(Fact):
    """Frequencies of CPUs with something to do, within one window."""

    window_seconds: float
    samples: int
    processor: Processor
    busy: tuple[BusyCpu, ...]
    loaded: int  # CPUs that were busy, with or without a frequency that can be read
    throttles: tuple[Throttle, ...]
    sensors: tuple[Sensor, ...]


def read(captures: Captures) -> CpuSpeed:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
    """
    seen, sensors = activity(captures.need("activity")), captures.have("temperatures")
    _, times = cpu_times(seen)
    shares = {cpu: time.busy / max(1, time.total) for cpu, time in times.items()}
    busy = {cpu: share for cpu, share in sorted(shares.items()) if share >= _WORTH_A_LOOK}
    return CpuSpeed(
        window_seconds=round(seen.seconds, 2),
        samples=len(seen.frequencies),
        processor=processor(captures.need("cpuinfo")),
        busy=tuple(_busy(seen, busy)),
        loaded=len(busy),
        throttles=tuple(_throttles(seen)),
        sensors=tuple(_sensors(sensors)) if sensors else (),
    )


def _busy(seen: Activity, shares: dict[int, float]) -> Iterator[BusyCpu]:
    for cpu, share in shares.items():
        path = f"cpu{cpu}/cpufreq/scaling_cur_freq"
        samples = sorted(
            (whole(one[path]), one[path].line.number, one[path]) for one in seen.frequencies if path in one
        )
        if not samples:
            continue
        khz, _, shown = median_low(samples)
        base, evidence = _base(seen, cpu)
        yield BusyCpu(
            cpu=cpu,
            busy_share=round(share, 3),
            mhz=khz // 1000,
            base_mhz=base,
            evidence=(shown.evidence, *evidence),
        )


def _base(seen: Activity, cpu: int) -> tuple[int | None, tuple[Evidence, ...]]:
    """intel_pstate gives it in kHz, ACPI's CPPC in MHz, with 0 for firmware that does not say."""
    for path, unit in ((f"cpu{cpu}/cpufreq/base_frequency", 1000), (f"cpu{cpu}/acpi_cppc/nominal_freq", 1)):
        if path in seen.still and (mhz := whole(seen.still[path]) // unit):
            return mhz, (seen.still[path].evidence,)
    return None, ()


def _throttles(seen: Activity) -> Iterator[Throttle]:
    for name in seen.first:
        found = _THROTTLE.fullmatch(name)
        times = seen.moved(name) if found else None
        if found and times and times > 0:
            evidence = (seen.first[name].evidence, seen.last[name].evidence)
            yield Throttle(cpu=int(found[1]), kind=found[2], times=times, evidence=evidence)


def _sensors(capture: Capture) -> Iterator[Sensor]:
    """In thousandths of a degree (Linux, hwmon/sysfs-interface.rst); a label is optional."""
    files = capture.files()
    for path, (line, *_) in files.items():
        if not path.endswith("_input"):
            continue
        label = files.get(f"{path.removesuffix('input')}label")
        critical = files.get(f"{path.removesuffix('input')}crit")
        yield Sensor(
            label=_label(label[0]) if label else path.rpartition("/")[2].removesuffix("_input"),
            celsius=_celsius(line),
            critical_celsius=_celsius(critical[0]) if critical else None,
            evidence=(line.evidence, *((critical[0].evidence,) if critical else ())),
        )


def _label(line: Line) -> str:
    if re.fullmatch(r"[\w .-]{1,40}", line.text, re.ASCII) is None:
        raise ParseError(line.evidence, "the label of a sensor")
    return line.text


def _celsius(line: Line) -> float:
    if re.fullmatch(r"-?[0-9]{1,7}", line.text, re.ASCII) is None:
        raise ParseError(line.evidence, "thousandths of a degree")
    return int(line.text) / 1000


_WORTH_A_LOOK = 0.5
_THROTTLE = re.compile(r"cpu([0-9]{1,5})/thermal_throttle/(core|package)_throttle_count", re.ASCII)
