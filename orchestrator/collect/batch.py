r"""The output of a batch, cut into what each of its members would have given by itself.

`grep -H` puts ``path:`` before every line and `stat` prints the path first, so nothing that a file contains can look
like the separator, which is the line of a path that only we spell like that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from gapline.orchestrator.collect.fill import shown
from gapline.orchestrator.collect.frames import Frame
from gapline.orchestrator.collect.group import Batch
from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.reader import SEPARATOR
from gapline.orchestrator.model.source import File

_SEPARATOR = re.compile(rb"^" + re.escape(SEPARATOR.encode()) + rb"[:|].*\n", re.MULTILINE)
_COMPLAINT = re.compile(r"(?m)^(?:grep|stat): (?:can(?:no|')t \w+ )?'?(.+?)'?: [^:\n]+$")


def split(batch: Batch, frame: Frame) -> Iterator[tuple[Item, Frame]]:
    """Each member whose end is there, with its frame, in their order. Times are those of the whole batch."""
    if frame.status is not None and not frame.status.isdecimal():  # it was not run
        yield from ((item, replace(frame, number=number, out=b"")) for number, item in batch.members)
        return
    *parts, _ = _SEPARATOR.split(frame.out)
    complaints = _complaints(frame.err)
    for (number, item), part in zip(batch.members, parts, strict=False):
        yield item, _frame(number, item, part, _about(item, complaints) if complaints else b"", frame)


def _complaints(err: bytes) -> Mapping[str, str]:
    """Lines of standard error by the path they are about."""
    matches = _COMPLAINT.finditer(err.decode("utf-8", "surrogateescape"))
    return {match[1]: f"{match[0]}\n" for match in matches}


def _about(item: Item, complaints: Mapping[str, str]) -> bytes:
    """What was said about an item; a pattern that matches nothing is named as it stands."""
    text = shown(item)
    named = [text] if isinstance(item.source, File) else text.split()
    told = [complaints[one] for one in named if one in complaints]
    for one in named if not isinstance(item.source, File) else ():
        if "*" in one or "?" in one:
            told += [line for path, line in complaints.items() if path != one and _regex(one).fullmatch(path)]
    return "".join(told).encode("utf-8", "surrogateescape")


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"([*?])", pattern)
    return re.compile("".join({"*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part)) for part in parts))


def _frame(number: int, item: Item, part: bytes, err: bytes, whole: Frame) -> Frame:
    out = _unprefixed(part, f"{shown(item)}:".encode()) if isinstance(item.source, File) else part
    limit = item.source.limit
    return Frame(number, out[:limit], err, "1" if err else "0", whole.seconds, truncated=len(out) > limit)


def _unprefixed(part: bytes, prefix: bytes) -> bytes:
    """The lines of one file as they stand in it; `grep` ends the last one in any case."""
    return (b"\n" + part).replace(b"\n" + prefix, b"\n")[1:]
