"""From captures to the fact about CPU frequencies."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gapline.agents.host.cpu.fact import CpuFrequency, CpuGroup, Setting
from gapline.agents.host.cpu.processor import CPUINFO, processor
from gapline.agents.host.numa.cpu_list import ranges
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.source import KIB, File, Glob, Script, Source, Stat

_CPU = "/sys/devices/system/cpu"
_ATTRIBUTES = (
    *("affected_cpus", "boost", "cpuinfo_max_freq", "energy_performance_preference"),
    *("scaling_driver", "scaling_governor", "scaling_max_freq"),
)
_SWITCHES = (f"{_CPU}/cpufreq/boost", f"{_CPU}/intel_pstate/no_turbo", "/sys/firmware/acpi/pm_profile")

SOURCES: dict[str, Source] = {
    # Named attributes: a 512-thread host has some 20,000 files below cpufreq, and reading some of them wakes CPUs.
    "policies": Glob(" ".join(f"{_CPU}/cpufreq/policy*/{name}" for name in _ATTRIBUTES), limit=1024 * KIB),
    "switches": Glob(" ".join(_SWITCHES)),
    "cppc": Stat(f"{_CPU}/cpu0/acpi_cppc"),
    "cpuinfo": CPUINFO,
    # A command line can hold anything; only what chooses a driver leaves the machine.
    "parameters": Script(
        name="cpufreq_parameters",
        text="tr ' ' '\\n' </proc/cmdline | sed -nE '/^(amd_pstate|intel_pstate|cpufreq[.][a-z_]+)(=|$)/p'",
    ),
    "kernel": File("/proc/sys/kernel/osrelease"),
}


def read(captures: Captures) -> CpuFrequency:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
    """
    policies, switches = captures.have("policies"), captures.have("switches")
    single = {path: lines[0] for path, lines in switches.files().items()} if switches else {}
    return CpuFrequency(
        groups=_groups(policies) if policies else (),
        boost=_setting(single.get(_SWITCHES[0]), _BIT, "0 or 1"),
        no_turbo=_setting(single.get(_SWITCHES[1]), _BIT, "0 or 1"),
        power_profile=_setting(single.get(_SWITCHES[2]), _NUMBER, "a number"),
        processor=processor(captures.need("cpuinfo")),
        cppc=captures.have("cppc") is not None,
        parameters=tuple(
            Setting(value=line.text, evidence=line.evidence) for line in captures.need("parameters").lines()
        ),
        kernel=captures.need("kernel").first().text,
    )


def _groups(capture: Capture) -> tuple[CpuGroup, ...]:
    policies: dict[str, dict[str, Line]] = {}
    for path, lines in capture.files().items():
        folder, _, name = path.rpartition("/")
        policies.setdefault(folder, {})[name] = lines[0]
    if not policies:
        raise ParseError(capture.first().evidence, "attributes of cpufreq policies")
    alike: dict[tuple[str, ...], list[dict[str, Line]]] = {}
    for values in policies.values():
        key = tuple(values[name].text if name in values else "" for name in _ATTRIBUTES[1:])
        alike.setdefault(key, []).append(values)
    return tuple(_group(members) for members in alike.values())


def _group(members: list[dict[str, Line]]) -> CpuGroup:
    values = members[0]
    cpus = sorted(cpu for member in members for cpu in _cpus(member))
    allowed, highest = _needed(values, "scaling_max_freq", _NUMBER), _needed(values, "cpuinfo_max_freq", _NUMBER)
    return CpuGroup(
        cpus=ranges(cpus),
        count=len(cpus),
        driver=_needed(values, "scaling_driver", _WORD),
        governor=_needed(values, "scaling_governor", _WORD),
        preference=_setting(values.get("energy_performance_preference"), _WORD, "a word or a number"),
        boost=_setting(values.get("boost"), _BIT, "0 or 1"),
        allowed=allowed,
        highest=highest,
        allowed_mhz=int(allowed.value) // 1000,
        highest_mhz=int(highest.value) // 1000,
    )


def _cpus(member: Mapping[str, Line]) -> list[int]:
    """A policy whose CPUs are all offline has an empty list."""
    line = member.get("affected_cpus", next(iter(member.values())))
    if line.source.rpartition("/")[2] != "affected_cpus" or _CPUS.fullmatch(line.text) is None:
        raise ParseError(line.evidence, "the CPUs of a policy")
    return [int(cpu) for cpu in line.text.split()]


def _said(line: Line) -> Setting:
    return Setting(value=line.text, evidence=line.evidence)


def _needed(values: Mapping[str, Line], name: str, form: re.Pattern[str]) -> Setting:
    setting = _setting(values.get(name), form, "one word")
    if setting is None:
        raise ParseError(next(iter(values.values())).evidence, f"a policy that has {name}")
    return setting


def _setting(line: Line | None, form: re.Pattern[str], expected: str) -> Setting | None:
    if line is None:
        return None
    if form.fullmatch(line.text) is None:
        raise ParseError(line.evidence, expected)
    return _said(line)


_BIT = re.compile("[01]")
_NUMBER = re.compile("[0-9]{1,9}", re.ASCII)
_WORD = re.compile(r"[\w.-]{1,40}", re.ASCII)
_CPUS = re.compile("(?:[0-9]{1,6}(?: [0-9]{1,6})*)?", re.ASCII)
