"""Small files of a container's cgroup as its host shows them: single values, tables of counters, pressure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import CollectError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import File

UNIFIED = File("/sys/fs/cgroup/cgroup.controllers")
"""There only where cgroup v2 alone is mounted at /sys/fs/cgroup."""

_COUNTER = re.compile(r"([a-z][A-Za-z0-9_.]{0,40}) ([0-9]{1,20})")
_NUMBER = re.compile(r"[0-9]{1,20}")
_NO_LIMIT = (
    1 << 62
)  # hugetlb files write the largest number of whole pages where others write `max` (seen on Linux 6.18)
_PRESSURE = re.compile(
    r"(some|full) avg10=[0-9.]{1,8} avg60=([0-9]{1,3}\.[0-9]{2}) avg300=[0-9.]{1,8} total=[0-9]{1,20}"
)

Files = Mapping[str, tuple[Line, ...]]


class Amount(Fact):
    """A number that a cgroup file holds; None is `max`, no limit."""

    value: int | None
    evidence: Evidence


class Counter(Fact):
    """One row of a table such as memory.events."""

    value: int
    evidence: Evidence


class Pressure(Fact):
    """The share of the last minute in which all (`full`) tasks that had work waited (Linux, accounting/psi.rst)."""

    share: float
    evidence: Evidence


def amount(files: Files, path: str) -> Amount | None:
    """The single value of a file; None where the file is not there: its controller is off, and nothing limits.

    Raises:
        ParseError: neither a number nor `max`.
    """
    lines = files.get(path)
    if not lines:
        return None
    text = lines[0].text.strip()
    if text != "max" and not _NUMBER.fullmatch(text):
        raise ParseError(lines[0].evidence, "a number or 'max'")
    unlimited = text == "max" or int(text) >= _NO_LIMIT
    return Amount(value=None if unlimited else int(text), evidence=lines[0].evidence)


def counters(files: Files, path: str) -> dict[str, Counter]:
    """The rows of a table of counters by their names; empty where there is no such file.

    Raises:
        ParseError: a row of another form.
    """
    found: dict[str, Counter] = {}
    for line in files.get(path, ()):
        match = _COUNTER.fullmatch(line.text.strip())
        if match is None:
            raise ParseError(line.evidence, "a name and a number")
        found[match[1]] = Counter(value=int(match[2]), evidence=line.evidence)
    return found


def full_pressure(files: Files, path: str) -> Pressure | None:
    """The `full` line of a pressure file; None where the kernel does not keep it.

    Raises:
        ParseError: a line of another form.
    """
    for line in files.get(path, ()):
        match = _PRESSURE.fullmatch(line.text.strip())
        if match is None:
            raise ParseError(line.evidence, "some or full, with averages over 10, 60 and 300 seconds")
        if match[1] == "full":
            return Pressure(share=float(match[2]) / 100, evidence=line.evidence)
    return None


def unified(capture: Capture) -> bool:
    """Whether the host has cgroup v2 only.

    Raises:
        CollectError: that could not be seen.
    """
    if capture.problem is None:
        return True
    if capture.problem.kind is ProblemKind.MISSING:
        return False
    raise CollectError(capture.target, capture.shown, capture.problem)


def old_layout(what: str) -> tuple[Problem, ...]:
    """Why nothing is said where cgroup v1 is mounted."""
    problem = Problem(
        kind=ProblemKind.UNSEEN,
        detail=f"the host has a cgroup v1 or hybrid layout, in which {what} are not read",
        hint="Proxmox VE 7 and later boot with cgroup v2 unless systemd.unified_cgroup_hierarchy=0 is on the kernel's "
        "command line.",
    )
    return (problem,)


def cited(*parts: Amount | Counter | Pressure | None) -> tuple[Evidence, ...]:
    """The lines of those that were there."""
    return tuple(part.evidence for part in parts if part is not None)


def folder(capture: Capture, name: str) -> str:
    """The folder of the container's cgroup: what stands before `name` in the first pattern that ends so.

    Raises:
        ParseError: no pattern ends so.
    """
    paths: Sequence[str] = capture.shown.split()
    for path in paths:
        if path.endswith(f"/{name}"):
            return path.removesuffix(f"/{name}")
    raise ParseError(capture.first().evidence, f"a path that ends in {name}")
