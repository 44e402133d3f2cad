"""The runbook as a shell script that asks before each step.

It is run on a host, as root, by somebody who has read it. What only a person can decide is shown and not run; text that
came from a target is printed, never executed.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from shlex import quote

from gapline.reports.runbook.markdown import HEADINGS
from gapline.reports.runbook.plan import HostPlan, Runbook, verification
from gapline.reports.runbook.reboot import check, keep_kernel, way_back
from gapline.reports.runbook.step import Part, Step
from gapline.reports.visible import clipped, visible

_WIDTH = 1500

_HEAD = """\
#!/bin/sh
# The repairs that Gapline's run {run} asks for. Read it before you run it, on the host itself and as root:
#   sh runbook.sh HOST
# Nothing is changed without a y. A step that fails ends the script; it can be started again.
# shellcheck disable=SC2016  # text that is printed must not expand
set -eu

say() { printf '%s\\n' "$1"; }
agreed() { printf '%s [y/N] ' "$1"; read -r answer || answer=; [ "$answer" = y ]; }
"""

_TAIL = """\
case ${{1:-}} in
{cases}*) say {usage}; exit 2 ;;
esac
"""


def script(book: Runbook) -> Iterator[str]:
    """The script in pieces; POSIX sh."""
    yield _HEAD.replace("{run}", _comment(book.run.run.id))
    if book.run.run.synthetic:
        yield "# Worked example, synthetic data.\n"
    for plan in book.hosts:
        yield from _host(plan)
    cases = "".join(f"{quote(plan.host.id)}) {_function(plan)} ;;\n" for plan in book.hosts)
    names = " | ".join(plan.host.id for plan in book.hosts) or "(no host has anything to repair)"
    yield "\n" + _TAIL.format(cases=cases, usage=quote(f"usage: sh runbook.sh {names}"))


def _host(plan: HostPlan) -> Iterator[str]:
    yield f"\n{_function(plan)}() {{\n"
    for part in Part:
        if steps := plan.of(part):
            yield _say(f"== {plan.host.id}: {HEADINGS[part]}")
            for step in steps:
                yield from _step(step)
            yield from _after(plan, part, steps)
    yield "}\n"


def _step(step: Step) -> Iterator[str]:
    first, remedy = step.findings[0], step.remedy
    more = f" (and {len(step.findings) - 1} more)" if len(step.findings) > 1 else ""
    yield _say("")
    yield _say(f"-- {step.target}: {first.title}, {step.severity} ({first.code}){more}")
    told = {
        "found": first.observed,
        "now": remedy.now,
        "lasts": remedy.lasting,
        "back": remedy.undo,
        "costs": remedy.cost,
    }
    for word, text in told.items():
        yield _say(f"   {word + ':':<7}{text}")
    for line in remedy.diff.splitlines():
        yield _say(f"   {line}")
    if remedy.commands:
        yield from _asked(remedy.commands)


def _after(plan: HostPlan, part: Part, steps: Sequence[Step]) -> Iterator[str]:
    if part is Part.RESTART:
        for target in plan.restarted:
            name = quote(target.partition("/")[2])
            restart = (f"pct reboot {name}",) if plan.proxmox else (f"lxc-stop -n {name}", f"lxc-start -n {name}")
            yield from _asked(restart)
    for target, agents in verification(tuple(steps)):
        yield _say(f"look again, from the machine that has Gapline: gapline rerun {' '.join(agents)} --target {target}")
    if part is Part.REBOOT:
        yield from _asked(keep_kernel(plan))
        yield _say(f"before the reboot this must be clean: {' '.join(check(plan))}")
        yield _say(way_back(plan))
        yield from _asked(("systemctl reboot",))


def _asked(commands: Sequence[str]) -> Iterator[str]:
    for command in commands:
        yield _say(f"   $ {command}")
    yield "    if agreed 'Run it?'; then\n"
    yield from (f"        {command}\n" for command in commands)
    yield "    fi\n"


def _say(text: str) -> str:
    """A line that prints the text, whatever it holds; line feeds stay out of it."""
    return f"    say {quote(' '.join(visible(clipped(text, _WIDTH)).split(chr(10))))}\n"


def _function(plan: HostPlan) -> str:
    """A name that a shell takes: host names may hold dots and dashes, and two may become the same."""
    plain = re.sub(r"[^A-Za-z0-9]", "_", plan.host.id)
    return f"host_{plain}_{zlib.crc32(plan.host.id.encode()):08x}"


def _comment(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._:-]", "_", text)
