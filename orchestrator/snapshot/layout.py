"""Names and forms of the files of a snapshot.

::

    manifest.json            schema, version of Gapline, time, synthetic or not, the targets once all are written
    pve1/captures.json       the captures of a target; short output is inline
    pve1/file_proc_….txt     longer or binary output, as it came
    pve1/target.json         whose it is and what is known about it; written last, so a target that has it is complete
    pve1/129/…               a container of it
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Literal
from urllib.parse import quote

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from gapline.orchestrator.model.problem import Problem

SCHEMA: Literal["gapline/snapshot/1"] = "gapline/snapshot/1"
FAMILY = "gapline/snapshot/"
MANIFEST = "manifest.json"
TARGET = "target.json"
CAPTURES = "captures.json"
INLINE = 4096
"""Bytes of output up to which it stands in captures.json: opening a file costs more than writing a page."""

_LONGEST_NAME = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Manifest(BaseModel):
    """`manifest.json`. `targets` is None while the audit runs, and stays so when it was killed."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)

    schema_: Literal["gapline/snapshot/1"] = Field(default=SCHEMA, alias="schema")
    version: str
    created: AwareDatetime
    synthetic: bool
    targets: tuple[str, ...] | None = None


class About(BaseModel):
    """`target.json`: the target's id, and what the caller knows about it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    about: dict[str, Any] = {}


class Entry(BaseModel):
    """One capture in `captures.json`. Its output is `text`, or the content of the `file` beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    shown: str = ""
    text: str | None = None
    file: str | None = None
    err: str = ""
    exit: int | None = 0
    seconds: float = 0.0
    truncated: bool = False
    problem: Problem | None = None


def folder(target: str) -> str:
    """The folder of a target, relative to the snapshot: readable, never outside of it, different for each target."""
    return "/".join(_segment(part) for part in target.split("/"))


def file_name(source: str, taken: set[str]) -> str:
    """A file name for a source's output that no other source of the target has; it is added to those `taken`."""
    stem = _UNSAFE.sub("_", source).strip("._")[:_LONGEST_NAME] or "output"
    name, number = f"{stem}.txt", 1
    while name.lower() in taken:
        number += 1
        name = f"{stem}-{number}.txt"
    taken.add(name.lower())
    return name


def _segment(text: str) -> str:
    """One level. What looks like one of our own files, or like a hidden or parent folder, has its dots encoded."""
    safe = quote(text, safe="@+") or "%"
    if safe.startswith(".") or safe.endswith((".json", ".txt")):
        safe = safe.replace(".", "%2E")
    if len(safe) > _LONGEST_NAME:
        safe = safe[:_LONGEST_NAME] + "%" + hashlib.sha256(text.encode()).hexdigest()[:16]
    return safe
