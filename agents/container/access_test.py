"""The test, inside a container, whether its GPU nodes can be used; it neither opens a GPU nor creates anything.

`access(2)` asks the device policy, too (fs/namei.c calls `devcgroup_inode_permission`), so `test -r` is honest where
the shell calls it. busybox does not: as root it answers "readable" for a node that the kernel denies. Opening is
honest everywhere; it is done for nvidiactl and nvidia-uvm only, which wake nothing, and only when the node's major
belongs to that driver now, for opening a node that nobody owns makes the kernel look for a module.

The shell is told by what it is and not by its name alone: /bin/sh can be a copy or a hard link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script, Vantage

ACCESS = Script(
    name="gpu-access",
    vantage=Vantage.INSIDE,
    timeout=10,
    text=r"""
LC_ALL=C; export LC_ALL
sh=$(readlink "/proc/$$/exe" 2>/dev/null) || sh=
sh=${sh##*/}
if [ -n "${BASH_VERSION:-}" ]; then sh=bash
elif grep -q -i -e busybox -e toybox "/proc/$$/exe" 2>/dev/null; then sh=busybox
elif [ "$sh" = sh ] && ! (eval 'x=ab; [ "${x/a/b}" = bb ]') 2>/dev/null; then sh=dash
fi
printf 'sh|%s\n' "${sh:-unknown}"
printf 'id|%s\n' "$(id -u 2>/dev/null)"
may() { if test "-$1" "$2"; then printf y; else printf n; fi; }
major() {
  while read -r m d; do
    case $m in Block) return ;; esac
    case " $2 " in *" $d "*) printf '%s' "$m"; return ;; esac
  done </proc/devices
}
try() {
  [ -c "$1" ] || return 0
  h=$(stat -L -c %t "$1" 2>/dev/null) || return 0
  case $h in ''|*[!0-9a-f]*) return 0 ;; esac
  [ "$((0x$h))" = "$(major x "$2")" ] || return 0
  if e=$( ( [ -c "$1" ] && : <>"$1" ) 2>&1 ); then e=ok; fi
  printf 'open|%s|%s\n' "$1" "${e##*: }"
}
for n in /dev/nvidia* /dev/nvidia-caps/*; do
  k=other
  if [ -c "$n" ]; then k='char'; elif [ -d "$n" ]; then k='dir'; elif [ -f "$n" ]; then k='file'; fi
  if [ -L "$n" ]; then k="$k-link"; elif [ "$k" = other ]; then [ -e "$n" ] || continue; fi
  printf 'node|%s|%s|%s%s\n' "$n" "$k" "$(may r "$n")" "$(may w "$n")"
done
try /dev/nvidiactl 'nvidiactl nvidia-frontend nvidia'
try /dev/nvidia-uvm nvidia-uvm
echo end
""",
)

_HONEST = frozenset({"dash", "bash", "ksh", "ksh93", "mksh", "zsh", "zsh5"})
"""Shells whose `test` calls access(2); dash and bash were tried against a denied node."""


class Opening(StrEnum):
    """How opening a node ended, by the error number behind the shell's message."""

    OK = "ok"
    EPERM = "EPERM"  # the device policy denies, even for root
    EACCES = "EACCES"  # mode or owner
    ENXIO = "ENXIO"  # no driver owns the numbers
    ENOENT = "ENOENT"
    ENODEV = "ENODEV"
    EIO = "EIO"
    OTHER = "other"


_MESSAGES = {
    "ok": Opening.OK,
    "Operation not permitted": Opening.EPERM,
    "Permission denied": Opening.EACCES,
    "No such device or address": Opening.ENXIO,
    "No such file or directory": Opening.ENOENT,
    "No such file": Opening.ENOENT,  # dash
    "No such device": Opening.ENODEV,
    "Input/output error": Opening.EIO,
    "I/O error": Opening.EIO,  # musl
}


class NodeAccess(Fact):
    """What the container's root may do with a node. None: it was not asked, or not by an honest shell."""

    path: str
    kind: str  # "char", "file", "dir", "other", with "-link" when the path is a symbolic link
    readable: bool | None
    writable: bool | None
    opening: Opening | None
    evidence: Evidence

    @property
    def granted(self) -> bool | None:
        """The best answer there is: an attempt to open beats a question."""
        if self.opening is not None:
            return self.opening is Opening.OK
        return None if self.readable is None else bool(self.readable and self.writable)


class AccessTest(Fact):
    """The answers of one run."""

    shell: str
    nodes: tuple[NodeAccess, ...]

    @property
    def honest(self) -> bool:
        """Whether the shell asks the kernel."""
        return self.shell in _HONEST


_NODE = re.compile(r"node\|(/dev/nvidia[^|]*)\|((?:char|file|dir|other)(?:-link)?)\|([yn])([yn])")
_OPEN = re.compile(r"open\|(/dev/nvidia[^|]*)\|(.*)")
_OTHER = re.compile(r"(sh|id)\|([A-Za-z0-9._+-]*)|end")


def access_test(capture: Capture) -> AccessTest:
    """Read the script's output.

    Raises:
        ParseError: a line has an unknown form, or the last one is missing.
    """
    lines = list(capture.lines())
    if not lines or lines[-1].text != "end":
        raise ParseError(lines[-1].evidence if lines else capture.first().evidence, "'end' as the last line")
    shell = _shell(lines[0])
    opened = {match[1]: (_opening(match[2]), line) for line in lines if (match := _OPEN.fullmatch(line.text))}
    return AccessTest(shell=shell, nodes=tuple(_nodes(lines, opened, honest=shell in _HONEST)))


def _shell(line: Line) -> str:
    match = _OTHER.fullmatch(line.text)
    if match is None or match[1] != "sh":
        raise ParseError(line.evidence, "'sh|' and the shell's name")
    return match[2]


def _opening(message: str) -> Opening:
    return _MESSAGES.get(message.strip(), Opening.OTHER)


def _nodes(lines: list[Line], opened: dict[str, tuple[Opening, Line]], *, honest: bool) -> Iterator[NodeAccess]:
    for line in lines:
        match = _NODE.fullmatch(line.text)
        if match is None:
            if not _OPEN.fullmatch(line.text) and not _OTHER.fullmatch(line.text):
                raise ParseError(line.evidence, "'node|PATH|KIND|ACCESS' or 'open|PATH|RESULT'")
            continue
        path, kind, readable, writable = match.groups()
        opening, at = opened.get(path, (None, line))
        yield NodeAccess(
            path=path,
            kind=kind,
            readable=readable == "y" if honest else None,
            writable=writable == "y" if honest else None,
            opening=opening,
            evidence=at.evidence,
        )
