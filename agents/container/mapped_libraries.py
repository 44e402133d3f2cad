"""The driver libraries that CUDA processes of a container have mapped: what they really got, by whatever path."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.gpu_users import CONTAINER_FDS, GPU_USERS
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script

# /proc/PID/maps names the real file, no link, and says "(deleted)" where it was replaced since.
MAPPED = Script(
    name="mapped-driver-libraries",
    root=True,
    timeout=15,
    text=GPU_USERS
    + CONTAINER_FDS
    + r"""
f=$(gpu_users "$@")
for p in $(cuda_pids "$f"); do
  grep -oE '/[^ |]*/lib(cuda|nvidia-ml|nvidia-ptxjitcompiler)\.so[0-9.]*( \(deleted\))?$' "/proc/$p/maps" 2>/dev/null |
    sort -u | sed "s/^/map|$p|/"
done
echo end
""",
)

_MAP = re.compile(
    r"map\|([1-9][0-9]{0,9})\|((?:/[^/|]*)+/(lib(?:cuda|nvidia-ml|nvidia-ptxjitcompiler)\.so)"
    r"(?:\.([0-9]{2,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?)|[0-9.]*))( \(deleted\))?"
)


class MappedLibrary(Fact):
    """One library of one process."""

    pid: int
    path: str
    name: str  # libcuda.so, …
    version: str | None
    deleted: bool  # the file was removed or replaced after the process had started
    evidence: Evidence


def mapped_libraries(capture: Capture) -> tuple[MappedLibrary, ...]:
    """Read the script's output.

    Raises:
        ParseError: a line has an unknown form, or the output stops early.
    """
    lines = list(capture.lines())
    if not lines or lines[-1].text != "end":
        raise ParseError(lines[-1].evidence if lines else capture.first().evidence, "'end' as the last line")
    return tuple(_libraries(capture))


def _libraries(capture: Capture) -> Iterator[MappedLibrary]:
    for line in capture.lines():
        if line.text in ("end", "no-cgroup|"):
            continue
        match = _MAP.fullmatch(line.text)
        if match is None:
            raise ParseError(line.evidence, "'map|PID|PATH'")
        pid, path, name, version, deleted = match.groups()
        yield MappedLibrary(
            pid=int(pid), path=path, name=name, version=version, deleted=bool(deleted), evidence=line.evidence
        )
