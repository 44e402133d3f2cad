"""Which processes hold NVIDIA nodes open, as `/proc/PID/fd` shows them. A CUDA process holds the UVM node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.errors import ParseError

UVM = "nvidia-uvm"
MOST_PROCESSES = 64
"""So many are described; an engine has one per GPU and a few more."""

# `gpu_users FOLDER…` prints "fd|PID|NODE" once for each pair; nvidia-persistenced and monitors hold no UVM node.
GPU_USERS = r"""
gpu_users() {
  [ $# -gt 0 ] || return 0
  find "$@" -maxdepth 1 -lname '/dev/nvidia*' -exec ls -ld {} + 2>/dev/null |
    sed -n 's,^.* /proc/\([0-9]*\)/fd/[0-9]* -. /dev/\(nvidia[a-z0-9-]*\)$,fd|\1|\2,p' | sort -u
}
cuda_pids() { printf '%s\n' "$1" | sed -n 's/^fd|\([0-9]*\)|nvidia-uvm$/\1/p' | head -n 64; }
"""

# Sets $@ to the fd folders of all processes of the container, or says "no-cgroup|". The cgroup is looked for in the
# unified hierarchy, then in the v1 ones that every layout with v1 has.
CONTAINER_FDS = r"""
d=
for h in '' /unified /systemd /devices /pids /memory; do
  if [ -n "$CGROUP" ] && [ -e "/sys/fs/cgroup$h$CGROUP/cgroup.procs" ]; then d=/sys/fs/cgroup$h$CGROUP; break; fi
done
set --
if [ -n "$d" ]; then
  p=$(find "$d" -name cgroup.procs -exec cat {} + 2>/dev/null)
  for p in $p; do
    case $p in *[!0-9]*) ;; *) set -- "$@" "/proc/$p/fd" ;; esac
  done
else echo 'no-cgroup|'
fi
"""

_FD = re.compile(r"fd\|([1-9][0-9]{0,9})\|(nvidia[a-z0-9-]{0,40})")
_GPU = re.compile(r"nvidia([0-9]{1,4})")


def gpu_users(lines: Iterable[Line]) -> Mapping[int, frozenset[str]]:
    """The nodes that each CUDA process holds open, by its pid, from the "fd|" lines among `lines`.

    Raises:
        ParseError: such a line has another form.
    """
    held: dict[int, set[str]] = {}
    for line in lines:
        if line.text.startswith("fd|"):
            match = _FD.fullmatch(line.text)
            if match is None:
                raise ParseError(line.evidence, "'fd|PID|NODE'")
            held.setdefault(int(match[1]), set()).add(match[2])
    return {pid: frozenset(nodes) for pid, nodes in held.items() if UVM in nodes}


def minors(nodes: Iterable[str]) -> tuple[int, ...]:
    """The N of the /dev/nvidiaN among the nodes, ascending."""
    return tuple(sorted(int(match[1]) for node in nodes if (match := _GPU.fullmatch(node))))
