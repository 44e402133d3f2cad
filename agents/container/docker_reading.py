"""Docker within a container: its daemon, the NVIDIA runtime, and what containers of it would get."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script, Vantage

# The client is asked only where the daemon runs, since a socket unit would start it. Of the configuration only named
# keys leave the target: it may hold proxies with passwords.
DOCKER = Script(
    name="nested-docker",
    vantage=Vantage.INSIDE,
    root=True,
    timeout=20,
    text=r"""
LC_ALL=C; export LC_ALL
running=
for p in /proc/[0-9]*/comm; do
  IFS= read -r c 2>/dev/null <"$p" || continue
  case $c in dockerd|podman) printf 'daemon|%s\n' "$c"; running=$running$c ;; esac
done
if [ -z "$running" ]; then echo end; exit 0; fi
while read -r a b n; do printf 'map|%s %s %s\n' "$a" "$b" "$n"; done </proc/self/uid_map
f=/etc/docker/daemon.json
if [ -r "$f" ]; then
  k='default-runtime|default-shm-size|storage-driver|cgroup-parent'
  tr '\n' ' ' <"$f" 2>/dev/null | grep -oE "\"($k)\"[[:space:]]*:[[:space:]]*\"[A-Za-z0-9._/-]{1,80}\"" |
    sed -E 's/"([a-z-]*)"[[:space:]]*:[[:space:]]*"([^"]*)"/daemon-json|\1|\2/'
  tr '\n' ' ' <"$f" 2>/dev/null | grep -oE 'native\.cgroupdriver=[a-z]{1,20}' | sed 's/^/daemon-json|cgroup|/'
fi
f=/etc/nvidia-container-runtime/config.toml
if [ -r "$f" ]; then
  grep -nE '^[[:space:]]*(no-cgroups|mode)[[:space:]]*=[[:space:]]*"?[a-z-]{1,20}"?[[:space:]]*$' "$f" |
    sed -E 's/^([0-9]*):[[:space:]]*([a-z-]*)[[:space:]]*=[[:space:]]*"?([a-z-]*)"?[[:space:]]*$/toolkit|\2|\3/'
fi
if command -v nvidia-ctk >/dev/null 2>&1; then
  v=$(nvidia-ctk --version 2>/dev/null | grep -oE '[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}' | head -n 1)
  printf 'toolkit|version|%s\n' "$v"
fi
for f in /etc/cdi/*.yaml /etc/cdi/*.json /var/run/cdi/*.yaml /var/run/cdi/*.json; do
  [ -r "$f" ] || continue
  l=$(grep -oE '/[A-Za-z0-9_./+-]{1,200}/libcuda\.so\.[0-9]{2,4}[0-9.]{1,12}' "$f" 2>/dev/null | head -n 1)
  if [ -n "$l" ]; then
    if [ -e "$l" ]; then s=present; else s=absent; fi
    printf 'cdi|%s|%s|%s\n' "${f##*/}" "$l" "$s"
  fi
done
case $running in *dockerd*)
  if command -v docker >/dev/null 2>&1; then
    T='timeout -k 1 8'; $T true 2>/dev/null || T=
    q='info|{{.Driver}}|{{.CgroupDriver}}|{{.CgroupVersion}}|{{.DefaultRuntime}}|'
    $T docker info --format "$q{{range \$k, \$v := .Runtimes}}{{\$k}} {{end}}" 2>/dev/null || echo 'info-failed|'
  fi ;;
esac
echo end
""",
)

_LINE = re.compile(r"(daemon|map|daemon-json|toolkit|cdi|info|info-failed)\|(.*)")
_WORD = re.compile(r"[A-Za-z0-9._/=+-]{0,400}")


class CdiSpec(Fact):
    """A CDI specification and the libcuda that it mounts."""

    name: str
    library: str
    present: bool
    evidence: Evidence


class NestedDocker(Fact):
    """Docker in a container; with no daemon nothing else is filled."""

    daemons: tuple[str, ...]  # dockerd, podman
    privileged: bool  # the container's user name space is the initial one
    settings: dict[str, str]  # of daemon.json, by key; `cgroup` is the driver
    toolkit: dict[str, str]  # of the NVIDIA toolkit: mode, no-cgroups, version
    cdi: tuple[CdiSpec, ...]
    storage: str  # as `docker info` says; empty where it gave no answer
    cgroup_driver: str
    cgroup_version: str
    default_runtime: str
    runtimes: tuple[str, ...]
    asked: bool  # `docker info` answered
    evidence: dict[str, Evidence]  # by the kinds of lines

    @property
    def has_nvidia(self) -> bool:
        """A runtime or a specification can give GPUs to its containers."""
        return "nvidia" in self.runtimes or self.settings.get("default-runtime") == "nvidia" or bool(self.cdi)


def nested_docker(capture: Capture) -> NestedDocker:
    """Read the script's output.

    Raises:
        ParseError: a line has an unknown form, or the output stops early.
    """
    lines = list(capture.lines())
    if not lines or lines[-1].text != "end":
        raise ParseError(lines[-1].evidence if lines else capture.first().evidence, "'end' as the last line")
    rows = [_row(line) for line in lines[:-1]]
    # A client that does not reach its daemon prints empty fields first.
    info = next((words for kind, line in rows if kind == "info" and (words := _words(line, 5))[0]), None)
    maps = [line.text for kind, line in rows if kind == "map"]
    return NestedDocker(
        daemons=tuple(dict.fromkeys(line.text for kind, line in rows if kind == "daemon")),
        privileged=maps == ["0 0 4294967295"],
        settings=dict(_pairs(rows, "daemon-json")),
        toolkit=dict(_pairs(rows, "toolkit")),
        cdi=tuple(_cdi(line) for kind, line in rows if kind == "cdi"),
        storage=info[0] if info else "",
        cgroup_driver=info[1] if info else "",
        cgroup_version=info[2] if info else "",
        default_runtime=info[3] if info else "",
        runtimes=tuple(info[4].split()) if info else (),
        asked=info is not None,
        evidence={"end": lines[-1].evidence, **{kind: line.evidence for kind, line in rows}},
    )


def _row(line: Line) -> tuple[str, Line]:
    match = _LINE.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "a line about Docker")
    return match[1], line._replace(text=match[2])


def _words(line: Line, count: int) -> list[str]:
    words = line.text.split("|")
    if len(words) != count or not all(_WORD.fullmatch(word.replace(" ", "")) for word in words):
        raise ParseError(line.evidence, f"{count} words")
    return words


def _pairs(rows: list[tuple[str, Line]], wanted: str) -> Iterator[tuple[str, str]]:
    for kind, line in rows:
        if kind == wanted:
            key, value = _words(line, 2)
            yield key, value.removeprefix("native.cgroupdriver=")


def _cdi(line: Line) -> CdiSpec:
    name, library, state = _words(line, 3)
    if state not in ("present", "absent"):
        raise ParseError(line.evidence, "'present' or 'absent'")
    return CdiSpec(name=name, library=library, present=state == "present", evidence=line.evidence)
