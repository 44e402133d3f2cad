"""Files that sysfs has of each NUMA node."""

from __future__ import annotations

import re

from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.errors import ParseError


def node_number(path: str, line: Line) -> int:
    """Of the node whose file this is; `line` is one of that file.

    Raises:
        ParseError: the path is of no node.
    """
    found = re.search(r"/node([0-9]{1,5})/", path, re.ASCII)
    if found is None:
        raise ParseError(line.evidence, "a file of a NUMA node")
    return int(found[1])


def distances(line: Line) -> tuple[int, ...]:
    """To all nodes that are online, in the order of their numbers, which may have gaps.

    Raises:
        ParseError: another form.
    """
    if re.fullmatch(r"[0-9]{1,3}(?: [0-9]{1,3})*", line.text.strip(), re.ASCII) is None:
        raise ParseError(line.evidence, "distances to all nodes")
    return tuple(map(int, line.text.split()))
