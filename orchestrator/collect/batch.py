r"""The output of a batch, cut into what each of its members would have given by itself.

`grep -H` puts ``path:`` before every line and `stat` prints the path first, so nothing that a file contains can look
like the separator, which is the line of a path that only we spell like that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from gapline.orchestrator.collect.fill import shown
from gapline.orchestrator.collect.frames import Frame
from gapline.orchestrator.collect.group import Batch
from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.reader import SEPARATOR
from gapline.orchestrator.model.source import File

_SEPARATOR = re.compile(rb"^" + re.escape(SEPARATOR.encode()) + rb"[:|].*\n", re.MULTILINE)
_COMPLAINT = re.compile(r"(?m)^(?:grep|stat): (?:can(?:no|')t \w+ )?'?(.+?)'?: [^:]+$")


def split(batch: Batch, frame: Frame) -> Iterator[tuple[Item, Frame]]:
    """Each member whose end is there, with its frame, in their order. Times are those of the whole batch."""
    if frame.status is not None and not frame.status.isdecimal():  # it was not run
        yield from ((item, replace(frame, number=number, out=b"")) for number, item in batch.members)
        return
    *parts, _ = _SEPARATOR.split(frame.out)
    complaints = [(match[1], match[0]) for match in _COMPLAINT.finditer(frame.err.decode("utf-8", "surrogateescape"))]
    for (number, item), part in zip(batch.members, parts, strict=False):
        text = shown(item)
        told = "".join(f"{line}\n" for path, line in complaints if _about(text, item, path))
        yield item, _frame(number, item, part, told.encode("utf-8", "surrogateescape"), frame)


def _about(text: str, item: Item, path: str) -> bool:
    """Whether a complaint about this path belongs to the item: a pattern that matches nothing is named as it is."""
    if isinstance(item.source, File):
        return path == text
    return any(path == one or _regex(one).fullmatch(path) is not None for one in text.split())


def _regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"([*?])", pattern)
    return re.compile("".join({"*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in parts))


def _frame(number: int, item: Item, part: bytes, err: bytes, whole: Frame) -> Frame:
    out = _unprefixed(part, f"{shown(item)}:".encode()) if isinstance(item.source, File) else part
    limit = item.source.limit
    status = "1" if err else "0"
    return replace(whole, number=number, out=out[:limit], err=err, status=status, truncated=len(out) > limit)


def _unprefixed(part: bytes, prefix: bytes) -> bytes:
    """The lines of one file as they stand in it; `grep` ends the last one in any case."""
    return re.sub(rb"(?m)^" + re.escape(prefix), b"", part)
