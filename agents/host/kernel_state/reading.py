"""From captures to the fact about the kernel."""

from __future__ import annotations

import re

from gapline.agents.host.boot_parameters import BOOT_PARAMETERS, boot_parameters
from gapline.agents.host.cpu.fact import Setting
from gapline.agents.host.cpu.processor import CPUINFO, processor
from gapline.agents.host.kernel_state.fact import Kernel
from gapline.orchestrator.model.capture import Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.source import File, Glob, Source

_CPU = "/sys/devices/system/cpu"
CPUFREQ_DRIVER = f"{_CPU}/cpufreq/policy0/scaling_driver"
IDLE_DRIVER = f"{_CPU}/cpuidle/current_driver"
SMT = f"{_CPU}/smt/control"
ISOLATED = f"{_CPU}/isolated"
NOHZ_FULL = f"{_CPU}/nohz_full"
NUMA_BALANCING = "/proc/sys/kernel/numa_balancing"
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
CLOCKS = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
ONLINE, PRESENT = f"{_CPU}/online", f"{_CPU}/present"
POWER_PROFILE = "/sys/firmware/acpi/pm_profile"
TAINT = "/proc/sys/kernel/tainted"
_STATES = (CPUFREQ_DRIVER, IDLE_DRIVER, SMT, ISOLATED, NOHZ_FULL, NUMA_BALANCING, HUGE_PAGES, CLOCK, CLOCKS)

SOURCES: dict[str, Source] = {
    "kernel": File("/proc/sys/kernel/osrelease"),
    "boot_parameters": BOOT_PARAMETERS,
    "states": Glob(" ".join((*_STATES, ONLINE, PRESENT, POWER_PROFILE, TAINT))),
    "mitigations": Glob(f"{_CPU}/vulnerabilities/*"),
    "cpuinfo": CPUINFO,
}


def read(captures: Captures) -> Kernel:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
    """
    release = captures.need("kernel").first()
    if re.fullmatch(r"[\w.+~-]{1,80}", release.text, re.ASCII) is None:
        raise ParseError(release.evidence, "the release of a kernel")
    states, mitigations = captures.have("states"), captures.have("mitigations")
    read_states = {path: _state(lines[0]) for path, lines in states.files().items()} if states else {}
    taint = read_states.pop(TAINT, None)
    shown = mitigations.files() if mitigations else {}
    return Kernel(
        release=release.text,
        evidence=release.evidence,
        processor=processor(captures.need("cpuinfo")),
        boot=boot_parameters(captures.need("boot_parameters")),
        states=read_states,
        taint=_taint(taint) if taint else None,
        mitigations={path.rpartition("/")[2]: lines[0].text[:200] for path, lines in shown.items()},
    )


def _state(line: Line) -> Setting:
    """A word, some words of which one can stand in brackets, or a list of CPUs."""
    if re.fullmatch(r"[\w.,:()\[\] +-]{0,400}", line.text, re.ASCII) is None:
        raise ParseError(line.evidence, "a state of the kernel")
    return Setting(value=line.text.strip(), evidence=line.evidence)


def _taint(setting: Setting) -> int:
    if re.fullmatch(r"[0-9]{1,10}", setting.value, re.ASCII) is None:
        raise ParseError(setting.evidence, "a number")
    return int(setting.value)
