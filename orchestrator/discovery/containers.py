"""Which containers a host has, in which state, and which of them use a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import File, Script, Source

DEVICES = File("/proc/devices")
CONTAINERS = Script(
    "containers",
    # One record per container: name, state, host pid of init, path of its configuration. The states and pids come
    # from lxc-info, one short call each; a half-dead monitor would hang it, hence the time-out.
    "seen=' '\n"
    "one() {\n"
    '  case $seen in *" $1 "*) return ;; esac\n'
    '  seen="$seen$1 "\n'
    # LXC prints the names ("State:") even when told not to humanise; a stopped container has no pid.
    '  set -- "$1" "$2" $($T lxc-info -n "$1" -s -p -H 2>/dev/null | sed "s/^[A-Za-z]*: *//")\n'
    '  printf "ct|%s|%s|%s|%s\\n" "$1" "${3:-UNKNOWN}" "${4:-}" "$2"\n'
    # Only the settings that can give a GPU leave the target: notes, environments and hooks' arguments hold secrets.
    '  grep -n -i -E "^(\\[|dev[0-9]+:|lxc\\.(mount\\.entry|hook\\.mount|cgroup2?\\.devices\\.allow))"'
    ' "$2" 2>/dev/null |'
    ' sed -E -e "s/((pass(word|wd)?|secret|token|credentials)=)[^,[:space:]]*/\\1/g" | while IFS= read -r l; do\n'
    '    printf "cf|%s|%s\\n" "$1" "$l"\n'
    "  done\n"
    '  case ${4:-} in ""|*[!0-9]*) ;; *)\n'
    '    while IFS= read -r l; do printf "cg|%s|%s\\n" "$1" "$l"; done <"/proc/$4/cgroup" ;; esac\n'
    "}\n"
    # Asked first and without a fork, because most hosts of a fleet end here.
    "if ! command -v lxc-info >/dev/null 2>&1; then echo no-lxc; exit 0; fi\n"
    'while read -r k e _; do [ "$k" = Uid: ] && break; done </proc/self/status\n'
    'if [ "$e" != 0 ]; then echo not-root; exit 0; fi\n'
    'T="timeout -k 1 3"; $T true 2>/dev/null || T=""\n'
    "for f in /etc/pve/lxc/*.conf; do\n"
    '  [ -f "$f" ] || continue; n=${f##*/}; one "${n%.conf}" "$f"\n'
    "done\n"
    "for f in /var/lib/lxc/*/config; do\n"
    '  [ -f "$f" ] || continue; n=${f%/config}; one "${n##*/}" "$f"\n'
    "done\n"
    # Processes that hold an NVIDIA node open, with the cgroups that tell whose they are.
    'find /proc/[0-9]*/fd -maxdepth 1 -lname "/dev/nvidia*" 2>/dev/null | while IFS= read -r l; do\n'
    '  [ -c "$l" ] || continue\n'
    "  p=${l#/proc/}; p=${p%%/*}\n"
    '  [ "$p" = "${q:-}" ] && continue; q=$p\n'
    '  while IFS= read -r l; do printf "gp|%s|%s\\n" "$p" "$l"; done <"/proc/$p/cgroup"\n'
    "done 2>/dev/null\n"
    "echo end\n",
    timeout=60,
)

SOURCES: Mapping[str, Source] = {"containers": CONTAINERS, "devices": DEVICES}

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RECORD = re.compile(rf"({NAME.pattern})\|([^|]*)\|([^|]*)\|(/[A-Za-z0-9._/-]{{1,200}})")
_NVIDIA = re.compile(r"dev/nvidia|hooks/nvidia|\bNVIDIA_")
"""A node, LXC's own hook, or the variables that this hook reads; not the name of a container, nor a tag."""
_PID = re.compile(r"[1-9][0-9]{0,9}")
_CGROUP_LINE = re.compile(r"(\d+):([^:]*):(/.*)")
NVIDIA_MAJOR = 195  # fixed for nvidia0…, nvidiactl and nvidia-modeset (open-gpu-kernel-modules, nv-chardev-numbers.h)


class State(StrEnum):
    """A container's state, as lxc-info names it; everything in between is `CHANGING`."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    FROZEN = "FROZEN"
    CHANGING = "CHANGING"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class SeenContainer:
    """One container of a host. `gpu` says why it counts as a GPU container, and is empty when it does not."""

    name: str
    state: State
    init: str  # host pid; empty when it is not running
    config: str
    cgroup: str  # limit cgroup below /sys/fs/cgroup; empty when it is not running
    gpu: str


@dataclass(frozen=True, slots=True)
class Containers:
    """All containers of a host, or why they could not be listed. No problem and no container: there are none."""

    seen: tuple[SeenContainer, ...]
    problem: Problem | None = None


def containers(captures: Mapping[str, Capture]) -> Containers:
    """Read the containers from the captures of `SOURCES`, by their names. Never raises."""
    listing = captures["containers"]
    lines = [line.text for line in listing.lines()]
    if "no-lxc" in lines:
        return Containers(())
    if "not-root" in lines:
        hint = "Log in as root, or set `become: sudo` for this host."
        return Containers((), Problem(kind=ProblemKind.DENIED, detail="only root can list containers", hint=hint))
    majors = _nvidia_majors(captures["devices"])
    processes = _gpu_processes(lines)
    records = {found.name: found for found in reversed(tuple(_records(lines)))}  # the first of a name counts
    seen = tuple(_with_gpu(found, lines, majors, processes) for found in reversed(records.values()))
    problem = listing.problem
    if problem is None and lines[-1:] != ["end"]:
        problem = Problem(kind=ProblemKind.UNREADABLE, detail="the list of containers is incomplete")
    return Containers(seen, problem)


def _records(lines: list[str]) -> Iterator[SeenContainer]:
    for line in lines:
        kind, _, rest = line.partition("|")
        record = _RECORD.fullmatch(rest)
        if kind != "ct" or record is None:
            continue
        name, state, init, config = record.groups()
        known = State(state) if state in State.__members__ else State.CHANGING
        pid = init if _PID.fullmatch(init) and known in (State.RUNNING, State.FROZEN) else ""
        yield SeenContainer(name, known, pid, config, _limit_cgroup(name, lines) if pid else "", "")


def _limit_cgroup(name: str, lines: list[str]) -> str:
    """The cgroup that carries the limits: `lxc/ID` on Proxmox VE, whose `ns` is what the container sees, and
    `lxc.payload.NAME` elsewhere. The unified hierarchy wins over a v1 one.
    """
    found = [
        m for line in lines if line.startswith(f"cg|{name}|") and (m := _CGROUP_LINE.fullmatch(line.split("|", 2)[2]))
    ]
    unified = [m[3] for m in found if m[1] == "0"]
    devices = [m[3] for m in found if "devices" in m[2].split(",")]
    for path in (*unified, *devices):
        if limit := _own_cgroup(path, name):
            return limit
    return ""


def _own_cgroup(path: str, name: str) -> str:
    for own in (f"/lxc/{name}", f"/lxc.payload.{name}"):
        head, found, tail = path.partition(own)
        if found and (not tail or tail.startswith("/")):
            return head + own
    return ""


def _nvidia_majors(devices: Capture) -> frozenset[str]:
    text = devices.text.partition("Block devices:")[0]
    names = re.findall(r"^\s*(\d+) nvidia", text, re.MULTILINE)
    return frozenset((*names, str(NVIDIA_MAJOR)))


def _gpu_processes(lines: list[str]) -> tuple[tuple[str, str], ...]:
    found = []
    for line in lines:
        kind, _, rest = line.partition("|")
        pid, _, cgroup = rest.partition("|")
        match = _CGROUP_LINE.fullmatch(cgroup)
        if kind == "gp" and _PID.fullmatch(pid) and match:
            found.append((pid, match[3]))
    return tuple(found)


def _with_gpu(
    found: SeenContainer, lines: list[str], majors: frozenset[str], processes: tuple[tuple[str, str], ...]
) -> SeenContainer:
    for pid, path in processes:
        if _own_cgroup(path, found.name):
            return replace(found, gpu=f"GPU process {pid} maps to it")
    for line in _current_config(found.name, lines):
        text = line.partition(":")[2]
        rule = re.search(r"devices\.allow\s*[=:]\s*c\s+(\d+):", text)
        if _NVIDIA.search(text) or (rule and rule[1] in majors):
            return replace(found, gpu=f"its configuration names an NVIDIA node or major: {text.strip()[:120]}")
    return found


def _current_config(name: str, lines: list[str]) -> Iterator[str]:
    """The numbered configuration lines in force: those above the first [section], notes left out."""
    prefix = f"cf|{name}|"
    for line in lines:
        if not line.startswith(prefix):
            continue
        numbered = line[len(prefix) :]
        text = numbered.partition(":")[2]
        if text.startswith("["):
            return
        if not text.startswith("#"):
            yield numbered
