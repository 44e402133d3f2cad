"""What the CPUs of a host do within one window: idle states, time, pressure, control groups, frequencies.

One script, because a second window would be a second wait, and because what is compared must be of the same seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.source import KIB, Script

# Five seconds: counters of an idle state move when it is left, and a CPU with nothing to do wakes up every four
# seconds for the soft-lockup watchdog (kernel/watchdog.c), so within five nearly every one of them shows up.
ACTIVITY = Script(
    name="activity",
    timeout=25,
    limit=2048 * KIB,
    text="""\
cd /sys/devices/system/cpu || exit 1
counters() {
  read -r up _ </proc/uptime
  echo "$1 $up"
  grep -H '' cpu[0-9]*/cpuidle/state*/usage cpu[0-9]*/cpuidle/state*/time \\
    cpu[0-9]*/thermal_throttle/core_throttle_count cpu[0-9]*/thermal_throttle/package_throttle_count 2>/dev/null
  grep -HE '^(cpu|some|full|usage_usec)' /proc/stat /proc/pressure/cpu /proc/pressure/io /proc/pressure/memory \\
    /sys/fs/cgroup/*/cpu.stat /sys/fs/cgroup/*/*/cpu.stat 2>/dev/null
}
echo still
grep -H '' cpu[0-9]*/cpuidle/state*/name cpu[0-9]*/cpuidle/state*/latency cpu[0-9]*/cpuidle/state*/disable \\
  cpu[0-9]*/cpufreq/base_frequency cpu[0-9]*/acpi_cppc/nominal_freq 2>/dev/null
grep -Hv '^0$' cpu[0-9]*/power/pm_qos_resume_latency_us 2>/dev/null
counters first
for n in 1 2 3 4 5; do
  sleep 1
  echo "frequency $n"
  grep -H '' cpu[0-9]*/cpufreq/scaling_cur_freq 2>/dev/null
done
counters last
echo end
""",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What stood in a file at one moment, and the script's line that says so."""

    text: str
    line: Line

    @property
    def evidence(self) -> Evidence:
        """The line as a finding cites it."""
        return self.line.evidence


@dataclass(slots=True)
class _Section:
    mark: Line
    values: dict[str, Reading] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Activity:
    """Readings by what they are of: `cpu3/cpuidle/state1/usage`, `/proc/stat:cpu3`, `/proc/pressure/io:some`."""

    seconds: float  # between the first and the last counters
    mark: Reading  # the line that starts the first counters
    still: Mapping[str, Reading]  # what does not move
    first: Mapping[str, Reading]
    last: Mapping[str, Reading]
    frequencies: tuple[Mapping[str, Reading], ...]  # one mapping for each of the samples in between, in kHz

    def moved(self, name: str) -> int | None:
        """By how much a counter rose; None where one of the readings lacks it, as of a CPU that went offline.

        Raises:
            ParseError: one of the readings is no number.
        """
        if name not in self.first or name not in self.last:
            return None
        return whole(self.last[name]) - whole(self.first[name])


@lru_cache(maxsize=2)  # several agents ask for the same one, one after the other, and it has thousands of lines
def activity(capture: Capture) -> Activity:
    """What `ACTIVITY` printed.

    Raises:
        ParseError: another form, or an output that breaks off.
    """
    sections = _sections(capture)
    names = [section.mark.text.split()[0] for section in sections]
    if names[:2] != ["still", "first"] or names[-2:] != ["last", "end"]:
        raise ParseError(sections[-1].mark.evidence, "two readings of the counters")
    first, last = sections[1], sections[-2]
    return Activity(
        seconds=_uptime(last.mark) - _uptime(first.mark),
        mark=Reading(first.mark.text, first.mark),
        still=sections[0].values,
        first=first.values,
        last=last.values,
        frequencies=tuple(section.values for section in sections[2:-2]),
    )


def whole(reading: Reading) -> int:
    """The number that is all of it.

    Raises:
        ParseError: it is none.
    """
    if re.fullmatch(r"[0-9]{1,20}", reading.text, re.ASCII) is None:
        raise ParseError(reading.evidence, "a number")
    return int(reading.text)


def _sections(capture: Capture) -> list[_Section]:
    sections: list[_Section] = []
    for line in capture.lines():
        path, colon, text = line.text.rpartition(":")
        if not colon and _MARK.fullmatch(text):
            sections.append(_Section(line))
            continue
        if not (sections and colon):
            raise ParseError(line.evidence, "a path and what is in it")
        name = path if path.startswith("cpu") else f"{path}:{text.split(' ', 1)[0]}"
        sections[-1].values[name] = Reading(text, line)
    if not sections:
        raise ParseError(capture.first().evidence, "readings of the CPUs")
    return sections


def _uptime(mark: Line) -> float:
    found = re.fullmatch(r"[a-z]+ ([0-9]{1,10}\.[0-9]{2})", mark.text, re.ASCII)
    if found is None:
        raise ParseError(mark.evidence, "a moment in seconds since boot")
    return float(found[1])


_MARK = re.compile(r"(?:still|end|(?:first|last|frequency) [0-9.]{1,20})", re.ASCII)
