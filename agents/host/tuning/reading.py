"""From captures to the fact about tuning services."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.host.tuning.fact import Service, Tuning, Wish
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import NotApplicableError, ParseError
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, Script, Source

_UNITS = (
    *("auto-cpufreq", "cpufreqd", "cpufrequtils", "cpupower", "irqbalance", "ksmtuned", "laptop-mode", "loadcpufreq"),
    *("numad", "ondemand", "power-profiles-daemon", "system76-power", "thermald", "tlp", "tuned", "tuned-ppd"),
)

SOURCES: dict[str, Source] = {
    "units": Command(
        (
            *("systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState"),
            *(f"{name}.service" for name in _UNITS),
        ),
        package="systemd",
    ),
    # Only the settings that are judged. A profile of tuned can include others, whose settings it overrides.
    "wishes": Script(
        name="tuning_wishes",
        text=r"""
names=
[ -r /etc/tuned/active_profile ] && read -r names </etc/tuned/active_profile
[ -n "$names" ] && echo "/etc/tuned/active_profile:1:profile=$names"
set -f
for _ in 1 2 3 4; do
  included=
  for name in $names; do
    case $name in .*|*[!A-Za-z0-9_.+-]*) continue ;; esac
    for folder in /etc/tuned/profiles /etc/tuned /usr/lib/tuned/profiles /usr/lib/tuned; do
      conf=$folder/$name/tuned.conf
      [ -r "$conf" ] || continue
      grep -HnE '^(governor|energy_performance_preference|kernel.numa_balancing)[ 	]*=' "$conf"
      included="$included $(sed -n 's/^include[ 	]*=[ 	]*//p' "$conf" | tr ',' ' ')"
      break
    done
  done
  names=$included
done
set +f
grep -HnE '^(GOVERNOR|governor|CPUPOWER_START_OPTS)=' /etc/default/cpufrequtils /etc/default/cpupower \
  /etc/sysconfig/cpupower 2>/dev/null
grep -HnE '^(CPU_SCALING_GOVERNOR_ON_AC|CPU_ENERGY_PERF_POLICY_ON_AC)=' /etc/tlp.conf /etc/tlp.d/*.conf 2>/dev/null
grep -HnE '^Profile=' /var/lib/power-profiles-daemon/state.ini 2>/dev/null
exit 0
""",
    ),
}


def read(captures: Captures) -> Tuning:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
        NotApplicableError: another init than systemd runs this host.
    """
    problem = captures["units"].problem
    if problem is not None and problem.kind is ProblemKind.COMMAND_MISSING:
        raise NotApplicableError(
            "this host has no systemctl, so systemd starts none of the services that are looked for"
        )
    if "booted with systemd" in captures["units"].error():
        raise NotApplicableError("this host was not booted with systemd, which starts the services that are looked for")
    services = tuple(_services(captures.need("units")))
    return Tuning(services=services, wishes=tuple(_wishes(captures.need("wishes"))))


def _services(capture: Capture) -> Iterator[Service]:
    """Blocks of `Name=value`, one a unit, with blank lines in between; units that do not exist are `not-found`."""
    block: dict[str, Line] = {}
    for line in (*capture.lines(), Line(capture.target, capture.shown, 0, "")):
        name, equals, _ = line.text.partition("=")
        if equals and name in _PROPERTIES:
            block[name] = line
        elif line.text or (block and not set(block) >= _NEEDED):
            raise ParseError(line.evidence, "a property of a unit")
        elif block:
            if _value(block["LoadState"]) != "not-found":
                yield _service(block)
            block = {}


def _service(block: dict[str, Line]) -> Service:
    found = re.fullmatch(r"([\w-]{1,40})\.service", _value(block["Id"]), re.ASCII)
    if found is None:
        raise ParseError(block["Id"].evidence, "the name of a service")
    return Service(
        name=found[1],
        active=_value(block["ActiveState"]) == "active",
        enabled="UnitFileState" in block and _value(block["UnitFileState"]).startswith("enabled"),
        evidence=block["ActiveState"].evidence,
    )


def _wishes(capture: Capture) -> Iterator[Wish]:
    """The first of equal names counts for tuned, whose own profile comes before those that it includes."""
    seen: set[tuple[str, str]] = set()
    for line in capture.lines():
        found = _WISH.fullmatch(line.text)
        if found is None:
            raise ParseError(line.evidence, "a file, a line number and a setting")
        path, name, value = found[1], found[2], found[3].strip().strip("\"'")
        service = next((service for part, service in _OWNERS if part in path), "")
        if not service or (service == "tuned" and (service, name) in seen):
            continue
        seen.add((service, name))
        if name == "CPUPOWER_START_OPTS":
            option = re.search(r"(?:-g|--governor)[ =]*(\w+)", value)
            name, value = "governor", option[1] if option else ""
        values = tuple(one.strip() for one in value.split("|"))
        if value:
            yield Wish(service=service, name=name.lower(), values=values, evidence=line.evidence)


def _value(line: Line) -> str:
    return line.text.partition("=")[2]


_NEEDED = {"Id", "LoadState", "ActiveState"}
_PROPERTIES = _NEEDED | {"UnitFileState"}
_WISH = re.compile(r"(/[\w./+-]{1,200}):[0-9]{1,6}:([\w.]{1,60})[ \t]*=([^\x00-\x1f]{0,200})", re.ASCII)
_OWNERS = (
    *(("/tuned/", "tuned"), ("/power-profiles-daemon/", "power-profiles-daemon")),
    *(("/cpufrequtils", "cpufrequtils"), ("/cpupower", "cpupower"), ("/tlp", "tlp")),
)
