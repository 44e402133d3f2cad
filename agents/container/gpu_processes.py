"""The init and the GPU processes of a container as the host's /proc shows them: limits, capabilities, memory.

An attached shell would show its own limits. Command lines and environments are never read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gapline.agents.container.process_limits import ProcessLimit, process_limits
from gapline.agents.gpu_users import CONTAINER_FDS
from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script

CAP_IPC_LOCK = 14  # include/uapi/linux/capability.h

PROCESSES = Script(
    name="gpu-processes",
    root=True,
    timeout=15,
    text=r"""
show() {
  [ -r "/proc/$2/limits" ] || return 0
  printf '%s|%s\n' "$1" "$2"
  if IFS= read -r l <"/proc/$2/comm"; then printf 'comm|%s\n' "$l"; fi
  while IFS= read -r l; do printf 'map|%s\n' "$l"; done <"/proc/$2/uid_map"
  while IFS= read -r l; do
    case $l in Uid:*|NSpid:*|Threads:*|VmLck:*|VmSwap:*|CapEff:*|Seccomp*) printf 'status|%s\n' "$l" ;; esac
  done <"/proc/$2/status"
  while IFS= read -r l; do printf 'limit|%s\n' "$l"; done <"/proc/$2/limits"
}
show init "$INIT"
for n in /proc/"$INIT"/root/dev/infiniband/uverbs*; do
  if [ -c "$n" ]; then printf 'rdma|%s\n' "${n##*/}"; fi
done
"""
    + CONTAINER_FDS
    + r"""
if [ -z "$d" ]; then exit 0; fi
if [ $# -gt 0 ]; then
  find "$@" -maxdepth 1 -lname '/dev/nvidia*' 2>/dev/null | {
    n=0; q=
    while IFS= read -r l; do
      p=${l#/proc/}; p=${p%%/*}
      if [ "$p" = "$q" ]; then continue; fi
      q=$p; n=$((n + 1))
      if [ "$n" -le 64 ]; then show gpu "$p"; fi
    done
    printf 'count|%s\n' "$n"
  }
fi
echo end
""",
)


class GpuProcess(Fact):
    """One process. `privileged`: its user name space is the initial one, so its capabilities are the host's."""

    pid: int  # as the host counts
    inner_pid: int | None  # as the container counts
    name: str
    privileged: bool
    capabilities: int  # effective, as a bit mask
    seccomp_filters: int | None = None  # of the process; None where the kernel does not count them (before 5.9)
    locked_kib: int | None
    swapped_kib: int | None
    limits: tuple[ProcessLimit, ...]
    evidence: tuple[Evidence, ...]  # uid map and effective capabilities

    def limit(self, name: str) -> ProcessLimit | None:
        """The limit that the kernel calls so, such as "Max open files"."""
        return next((limit for limit in self.limits if limit.name == name), None)

    @property
    def locks_freely(self) -> bool:
        """CAP_IPC_LOCK in the initial user name space: RLIMIT_MEMLOCK does not apply (mm/mlock.c, can_do_mlock)."""
        return self.privileged and bool(self.capabilities >> CAP_IPC_LOCK & 1)


class ContainerProcesses(Fact):
    """The container's init, its GPU processes (at most 64 of `total`) and its RDMA devices."""

    init: GpuProcess
    gpu: tuple[GpuProcess, ...]
    total: int
    searched: bool  # False: its cgroup was not found, so its processes are not known
    rdma: tuple[str, ...]


_START = re.compile(r"(init|gpu)\|([0-9]{1,10})")
_LINE = re.compile(r"(comm|map|status|limit|rdma|count|no-cgroup)\|(.*)")
_WHOLE_MAP = re.compile(r"\s*0\s+0\s+4294967295\s*")


def container_processes(capture: Capture) -> ContainerProcesses:
    """Read the script's output.

    Raises:
        ParseError: a line has an unknown form, the init is missing, or the output stops early.
    """
    lines = list(capture.lines())
    last = lines[-1] if lines else capture.first()
    if last.text not in ("end", "no-cgroup|"):
        raise ParseError(last.evidence, "'end' as the last line")
    blocks = list(_blocks(lines))
    processes = [(kind, found) for kind, at, block in blocks if (found := _process(at, block))]
    init = next((process for kind, process in processes if kind == "init"), None)
    if init is None:
        raise ParseError(lines[0].evidence, "the container's init with its capabilities")
    loose = [(match[1], match[2], line) for line in lines if (match := _LINE.fullmatch(line.text))]
    gpu = tuple(process for kind, process in processes if kind == "gpu")
    counts = [int(value) for key, value, _ in loose if key == "count" and value.isdecimal()]
    return ContainerProcesses(
        init=init,
        gpu=gpu,
        total=max(counts, default=len(gpu)),
        searched=last.text == "end",
        rdma=tuple(value for key, value, _ in loose if key == "rdma"),
    )


def _blocks(lines: list[Line]) -> Iterator[tuple[str, Line, list[tuple[str, Line]]]]:
    block: tuple[str, Line, list[tuple[str, Line]]] | None = None
    for line in lines:
        if start := _START.fullmatch(line.text):
            if block:
                yield block
            block = (start[1], line, [])
        elif match := _LINE.fullmatch(line.text):
            if block:
                block[2].append((match[1], Line(line.target, line.source, line.number, match[2])))
        elif line.text != "end":
            raise ParseError(line.evidence, "a line of a process")
    if block:
        yield block


def _process(at: Line, block: list[tuple[str, Line]]) -> GpuProcess | None:
    """None for a process that ended while it was read."""
    pid = int(at.text.partition("|")[2])
    status = {text.text.partition(":")[0]: text for kind, text in block if kind == "status"}
    maps = [text for kind, text in block if kind == "map"]
    capabilities = _after(status, "CapEff")
    if not re.fullmatch(r"[0-9a-f]{1,16}", capabilities):
        return None
    inner, filters = _after(status, "NSpid").split(), _after(status, "Seccomp_filters")
    return GpuProcess(
        pid=pid,
        inner_pid=int(inner[-1]) if inner and re.fullmatch(r"[0-9]{1,10}", inner[-1]) else None,
        name=next((text.text for kind, text in block if kind == "comm"), "")[:64],
        privileged=len(maps) == 1 and _WHOLE_MAP.fullmatch(maps[0].text) is not None,
        capabilities=int(capabilities, 16),
        seccomp_filters=int(filters) if re.fullmatch(r"[0-9]{1,6}", filters) else None,
        locked_kib=_kib(_after(status, "VmLck")),
        swapped_kib=_kib(_after(status, "VmSwap")),
        limits=process_limits(_as_in_file((text for kind, text in block if kind == "limit"), pid)),
        evidence=tuple(text.evidence for text in (*maps[:1], status["CapEff"])),
    )


def _as_in_file(lines: Iterable[Line], pid: int) -> list[Line]:
    """The rows of the limits, citing the file that the script printed."""
    return [Line(line.target, f"/proc/{pid}/limits", row, line.text) for row, line in enumerate(lines, start=1)]


def _after(status: dict[str, Line], key: str) -> str:
    return status[key].text.partition(":")[2].strip() if key in status else ""


def _kib(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]{1,18}) kB", text)
    return int(match[1]) if match else None
