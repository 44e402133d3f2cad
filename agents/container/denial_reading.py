"""What AppArmor denied to a container since the host started, by the host's kernel and audit logs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script

# LXC gives each container a profile "lxc-NAME_</var/lib/lxc>", and a name space of that form for what stacks below it.
# Equal denials are counted. With auditd the lines are in its file and not in the kernel's log. A pipe in a file's name
# becomes a question mark.
DENIALS = Script(
    name="apparmor-denials",
    root=True,
    timeout=15,
    text=r"""
LC_ALL=C; export LC_ALL
if [ ! -d /sys/module/apparmor ]; then printf 'off|\nend|whole\n'; exit 0; fi
told() {
  awk -v ct="$CT" '
function field(k) {
  if (match($0, " " k "=\"[^\"]*\"")) return clean(substr($0, RSTART + length(k) + 3, RLENGTH - length(k) - 4))
  if (match($0, " " k "=[^ ]*")) return clean(substr($0, RSTART + length(k) + 2, RLENGTH - length(k) - 2))
  return ""
}
function clean(v) { gsub(/[|]/, "?", v); return substr(v, 1, 200) }
NR <= 20 && /Linux version / { whole = 1 }
/apparmor="DENIED"/ && (index($0, "\"lxc-" ct "_<") || index($0, "//lxc-" ct "_<")) {
  n[field("operation") "|" field("class") "|" field("name") "|" field("info") "|" field("comm")]++
}
END {
  for (k in n) if (shown++ < 200) print "denied|" n[k] "|" k
  print "end|" (whole ? "whole" : "part")
}'
}
d=$(dmesg 2>/dev/null | told)
case $d in
*'end|whole') ;;
*) if command -v journalctl >/dev/null 2>&1; then d=$(journalctl -k -b -q --no-pager 2>/dev/null | told); fi ;;
esac
if [ -r /var/log/audit/audit.log ]; then
  tail -c 8388608 /var/log/audit/audit.log | grep -a 'apparmor="DENIED"' | told | grep '^denied'
fi
printf '%s\n' "$d"
""",
)

_DENIED = re.compile(r"denied\|([0-9]{1,9})\|([a-z_]{0,40})\|([a-z_]{0,40})\|([^|]*)\|([^|]*)\|([^|]*)")


class Denial(Fact):
    """One thing that was denied, and how often."""

    times: int
    operation: str  # open, mount, ptrace, …
    about: str  # file, mount, net, …
    name: str  # the path, where it has one
    info: str
    program: str
    evidence: Evidence


class Denials(Fact):
    """All of a container, by operation and path."""

    enabled: bool  # AppArmor is in this kernel
    whole: bool  # the log reaches back to the boot
    denials: tuple[Denial, ...]
    end: Evidence


def denials(capture: Capture) -> Denials:
    """Read the script's output.

    Raises:
        ParseError: a line has an unknown form, or the output stops early.
    """
    lines = list(capture.lines())
    last = lines[-1] if lines else capture.first()
    if last.text not in ("end|whole", "end|part"):
        raise ParseError(last.evidence, "'end|whole' or 'end|part' as the last line")
    body = [line for line in lines[:-1] if line.text != "off|"]
    found = sorted(_denials(body), key=lambda one: (one.operation, one.name, one.program))
    return Denials(
        enabled=len(body) == len(lines) - 1, whole=last.text == "end|whole", denials=tuple(found), end=last.evidence
    )


def _denials(lines: list[Line]) -> Iterator[Denial]:
    for line in lines:
        match = _DENIED.fullmatch(line.text)
        if match is None:
            raise ParseError(line.evidence, "'denied|TIMES|OPERATION|CLASS|NAME|INFO|PROGRAM'")
        times, operation, about, name, info, program = match.groups()
        yield Denial(
            times=int(times),
            operation=operation,
            about=about,
            name=name,
            info=info,
            program=program,
            evidence=line.evidence,
        )
