"""lxcfs in a container: which files it stands in for, whether they can be read, and whether they agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Vantage

# CPUs are counted in /proc/stat, which lxcfs virtualises as it does /proc/cpuinfo, and which costs less to read.
VIEW = Script(
    name="lxcfs-view",
    vantage=Vantage.INSIDE,
    text=r"""
LC_ALL=C; export LC_ALL
for f in /proc/meminfo /proc/stat /proc/uptime /proc/swaps /sys/devices/system/cpu/online; do
  if l=$(head -n 1 "$f" 2>&1); then printf 'read|%s|%s\n' "$f" "$l"; else printf 'failed|%s|%s\n' "$f" "$l"; fi
done
printf 'cpus|%s\n' "$(grep -c '^cpu[0-9]' /proc/stat 2>/dev/null)"
while read -r k v; do
  if [ "$k" = Cpus_allowed_list: ]; then printf 'allowed|%s\n' "$v"; fi
done </proc/self/status
echo end
""",
)

SOURCES: Mapping[str, Source] = {
    "mounts": File("/proc/{init}/mountinfo"),
    "view": VIEW,
    "version": Command(("lxcfs", "--version"), timeout=5, package="lxcfs"),
    "limits": Glob(
        "/sys/fs/cgroup{cgroup}/memory.max /sys/fs/cgroup{cgroup}/cpu.max "
        "/sys/fs/cgroup/memory{cgroup}/memory.limit_in_bytes /sys/fs/cgroup/cpu{cgroup}/cpu.cfs_quota_us"
    ),
}
_NO_LIMIT = 1 << 62  # v1 writes the largest number of whole pages for "none"
_MOUNT = re.compile(r"\d+ \d+ \d+:\d+ \S+ (/\S*) .* - fuse\.lxcfs .*")
_FILE = re.compile(r"(read|failed)\|(/[a-z/]{1,60})\|(.{0,300})")
_LIST = re.compile(r"[0-9]{1,6}(?:-[0-9]{1,6})?(?:,[0-9]{1,6}(?:-[0-9]{1,6})?)*")


class SeenFile(Fact):
    """A file that lxcfs can stand in for. `failure`: what reading it said; empty when it can be read."""

    path: str
    first: str
    failure: str
    evidence: Evidence


class ResourceLimit(Fact):
    """A limit of the container's cgroup that is in force."""

    name: str
    value: str
    evidence: Evidence


class Lxcfs(Fact):
    """What lxcfs shows in a container."""

    mounted: dict[str, Evidence]  # mount points of lxcfs, and their lines in mountinfo
    version: str | None  # of the program on the host; the one that runs may be older
    files: tuple[SeenFile, ...]
    cpus: int | None  # as /proc/stat counts
    cpus_evidence: Evidence
    online: int | None  # as /sys/devices/system/cpu/online counts
    allowed: int | None  # as the scheduler allows a process that we start there
    limits: tuple[ResourceLimit, ...]
    limits_seen: bool

    def file(self, path: str) -> SeenFile | None:
        """The file at a path."""
        return next((file for file in self.files if file.path == path), None)


def read(captures: Captures) -> Lxcfs:
    """The fact.

    Raises:
        CollectError: mounts or the view from inside could not be read.
        ParseError: a part has an unknown form.
    """
    mounts = captures.need("mounts")
    lines = list(captures.need("view").lines())
    if not lines or lines[-1].text != "end":
        raise ParseError(lines[-1].evidence if lines else captures["view"].first().evidence, "'end' as the last line")
    files = tuple(_file(line) for line in lines if line.text.startswith(("read|", "failed|")))
    counted = _after(lines, "cpus|")
    online = next((one.first for one in files if one.path.endswith("/online") and not one.failure), "")
    allowed = _after(lines, "allowed|")
    limits = captures["limits"]
    return Lxcfs(
        mounted={m[1]: line.evidence for line in mounts.lines() if (m := _MOUNT.fullmatch(line.text))},
        version=_version(captures["version"]),
        files=files,
        cpus=int(counted.text) if re.fullmatch(r"[1-9][0-9]{0,5}", counted.text) else None,
        cpus_evidence=counted.evidence,
        online=_count(online),
        allowed=_count(allowed.text),
        limits=tuple(_limits(limits)),
        limits_seen=limits.problem is None,
    )


def _file(line: Line) -> SeenFile:
    match = _FILE.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "'read|PATH|FIRST LINE' or 'failed|PATH|WHY'")
    failed = match[1] == "failed"
    return SeenFile(
        path=match[2],
        first="" if failed else match[3],
        failure=match[3] or "it gave nothing" if failed else "",
        evidence=line.evidence,
    )


def _after(lines: list[Line], heading: str) -> Line:
    for line in lines:
        if line.text.startswith(heading):
            return line._replace(text=line.text.removeprefix(heading))
    raise ParseError(lines[-1].evidence, f"a line '{heading}…'")


def _count(text: str) -> int | None:
    if not _LIST.fullmatch(text):
        return None
    ends = [part.partition("-") for part in text.split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def _version(capture: Capture) -> str | None:
    """None where it is not installed, or only where this user does not see it: it is told and not judged."""
    if capture.problem is not None and capture.problem.kind is not ProblemKind.FAILED:
        return None
    match = re.search(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){1,2}\b", capture.first().text)
    return match[0] if match else None


def _limits(capture: Capture) -> Iterator[ResourceLimit]:
    for path, (line, *_) in capture.files().items():
        value = line.text.split(" ")[0]
        if re.fullmatch(r"[0-9]{1,19}", value) and int(value) < _NO_LIMIT:
            yield ResourceLimit(name=path.rpartition("/")[2], value=value, evidence=line.evidence)
