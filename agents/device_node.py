"""Device nodes as `stat` shows them."""

from __future__ import annotations

import re

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact

SHARED = 0o006
GROUPED = 0o060


class DeviceNode(Fact):
    """One path with its type, numbers, mode and owner. `mode` is octal, as chmod takes it."""

    path: str
    kind: str  # as stat's %F: "character special file", "directory", "regular file", …
    major: int
    minor: int
    mode: str
    uid: int
    gid: int
    evidence: Evidence

    @property
    def is_character(self) -> bool:
        """Whether it is a character device, as every node of a GPU is."""
        return self.kind == "character special file"

    @property
    def permissions(self) -> int:
        """The mode as a number."""
        return int(self.mode, 8)

    @property
    def numbers(self) -> tuple[int, int]:
        """Major and minor."""
        return self.major, self.minor


def device_nodes(capture: Capture) -> tuple[DeviceNode, ...]:
    """All lines of a `Stat` source.

    Raises:
        ParseError: a line is not ``path|type|major hex|minor hex|mode octal|uid|gid``.
    """
    return tuple(_node(line) for line in capture.lines())


def _node(line: Line) -> DeviceNode:
    match = _LINE.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "path|type|major|minor|mode|uid|gid")
    path, kind, major, minor, mode, uid, gid = match.groups()
    return DeviceNode(
        path=path,
        kind=kind,
        major=int(major, 16),
        minor=int(minor, 16),
        mode=mode.zfill(4),
        uid=int(uid),
        gid=int(gid),
        evidence=line.evidence,
    )


_LINE = re.compile(
    r"(.+)\|([^|]+)\|([0-9a-f]{1,8})\|([0-9a-f]{1,8})\|([0-7]{1,5})\|([0-9]{1,10})\|([0-9]{1,10})", re.ASCII
)
