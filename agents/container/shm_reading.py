"""The /dev/shm that a container's init and its CUDA processes see: file system, size, what is free."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.agents.gpu_users import CONTAINER_FDS, GPU_USERS, gpu_users, minors
from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script

# A nested container has a /dev/shm of its own, so it is looked at through each process. A link would be followed on the
# host, so it is named and not followed. `stat -f` prints hexadecimal magic, block size and blocks.
SHM = Script(
    name="shm",
    root=True,
    timeout=15,
    text=GPU_USERS
    + CONTAINER_FDS
    + r"""
look() {
  m=
  if [ -r "/proc/$2/mountinfo" ]; then
    while read -r _ _ dev _ at opts _; do
      if [ "$at" = /dev/shm ]; then m="$dev|$opts"; fi
    done <"/proc/$2/mountinfo"
  else return 0
  fi
  if [ -z "$m" ]; then m="none|$(readlink "/proc/$2/ns/mnt")"; fi
  c=; if IFS= read -r c <"/proc/$2/comm"; then :; fi
  printf 'view|%s|%s|%s\n' "$1" "$2" "$c"
  printf 'mount|%s\n' "$m"
  s=/proc/$2/root/dev/shm
  if [ -L "$s" ]; then echo 'link|'; return 0; fi
  case $seen in *" $m "*) echo 'same|'; return 0 ;; esac
  if [ -d "$s" ]; then
    seen="$seen $m "
    stat -f -c 'size|%t|%S|%b|%a' "$s" 2>/dev/null || echo 'unread|'
  else echo 'absent|'
  fi
}
seen=
f=$(gpu_users "$@")
if [ -n "$f" ]; then printf '%s\n' "$f"; fi
for p in $(cuda_pids "$f"); do look cuda "$p"; done
look init "$INIT"
echo end
""",
)

_TMPFS = 0x01021994  # TMPFS_MAGIC, include/uapi/linux/magic.h
_RAMFS = 0x858458F6
_VIEW = re.compile(r"view\|(cuda|init)\|([1-9][0-9]{0,9})\|(.*)")
_MOUNT = re.compile(r"mount\|(?:none\|mnt:\[[0-9]{1,20}\]|([0-9]{1,8}:[0-9]{1,8})\|([a-z0-9_,=]{1,200}))")
_SIZE = re.compile(r"size\|([0-9a-f]{1,16})\|([0-9]{1,12})\|([0-9]{1,18})\|([0-9]{1,18})")
_STATES = {"same|": "same", "link|": "link", "absent|": "absent", "unread|": "unread"}


class Shm(Fact):
    """One /dev/shm. `size_bytes` is None where it was not seen, see `state`."""

    state: str  # seen, link, absent, unread; "same" is replaced by what it is the same as
    mounted: bool  # a mount of its own, and not a folder of what lies above
    read_only: bool
    in_memory: bool  # tmpfs or ramfs
    size_bytes: int | None  # 0 of a file system in memory: it has no limit of its own
    free_bytes: int | None
    users: tuple[str, ...]  # "VLLM::Worker (51877)"; the CUDA processes, else the init
    cuda: bool  # a CUDA process sees it
    gpus: tuple[int, ...]  # the minors of the GPUs that its users hold
    evidence: tuple[Evidence, ...]


class ContainerShm(Fact):
    """Every /dev/shm that matters in a container, each once."""

    views: tuple[Shm, ...]
    searched: bool  # False: its cgroup was not found, so its CUDA processes are not known


def container_shm(capture: Capture) -> ContainerShm:
    """Read the script's output.

    Raises:
        ParseError: a line has an unknown form, or the output stops early.
    """
    lines = list(capture.lines())
    if not lines or lines[-1].text != "end":
        raise ParseError(lines[-1].evidence if lines else capture.first().evidence, "'end' as the last line")
    users = gpu_users(lines)
    merged: dict[str, Shm] = {}
    for key, view in _views(lines[:-1], users):
        merged[key] = _with(merged[key], view) if key in merged else view
    if not merged:
        raise ParseError(lines[-1].evidence, "the /dev/shm of the container's init")
    return ContainerShm(views=tuple(merged.values()), searched=all(line.text != "no-cgroup|" for line in lines))


def _with(first: Shm, other: Shm) -> Shm:
    """Another process that sees the same file system."""
    if not other.cuda:
        return first
    gpus = tuple(sorted({*first.gpus, *other.gpus}))
    return first.model_copy(update={"users": (*first.users, *other.users), "gpus": gpus})


def _views(lines: list[Line], users: Mapping[int, frozenset[str]]) -> Iterator[tuple[str, Shm]]:
    rows = [line for line in lines if not line.text.startswith("fd|") and line.text != "no-cgroup|"]
    if len(rows) % 3:
        raise ParseError(lines[-1].evidence, "three lines for each /dev/shm")
    for view, mount, size in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        yield _view(view, mount, size, users)


def _view(view: Line, mount: Line, size: Line, users: Mapping[int, frozenset[str]]) -> tuple[str, Shm]:
    who, where = _VIEW.fullmatch(view.text), _MOUNT.fullmatch(mount.text)
    if who is None:
        raise ParseError(view.evidence, "'view|cuda or init|PID|NAME'")
    if where is None:
        raise ParseError(mount.evidence, "'mount|MAJOR:MINOR|OPTIONS' or 'mount|none|NAME SPACE'")
    pid, cuda = int(who[2]), who[1] == "cuda"
    state, in_memory, total, free = _size(size)
    return mount.text, Shm(
        state=state,
        in_memory=in_memory,
        size_bytes=total,
        free_bytes=free,
        mounted=where[1] is not None,
        read_only="ro" in (where[2] or "").split(","),
        users=(f"{who[3][:64] or 'process'} ({pid})",),
        cuda=cuda,
        gpus=minors(users.get(pid, ())) if cuda else (),
        evidence=(mount.evidence, size.evidence),
    )


def _size(line: Line) -> tuple[str, bool, int | None, int | None]:
    """State, whether it lies in memory, bytes in all, bytes free."""
    match = _SIZE.fullmatch(line.text)
    if match is not None:
        block = int(match[2])
        return "seen", int(match[1], 16) in (_TMPFS, _RAMFS), block * int(match[3]), block * int(match[4])
    if line.text not in _STATES:
        raise ParseError(line.evidence, "'size|MAGIC|BLOCK SIZE|BLOCKS|FREE' or why there is none")
    return _STATES[line.text], False, None, None
