"""Id maps of a user name space: the tables of /proc/PID/uid_map and gid_map, and `lxc.idmap` lines that ask for one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gapline.agents.container.setting import Setting
from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact

ALL_IDS = 4294967295
_ROW = re.compile(r"\s*([0-9]{1,10})\s+([0-9]{1,10})\s+([0-9]{1,10})\s*")
_ASKED = re.compile(r"([ugb])\s+([0-9]{1,10})\s+([0-9]{1,10})\s+([0-9]{1,10})")


class IdRange(Fact):
    """Ids from `inside` on are ids from `outside` on, `count` of them."""

    inside: int
    outside: int
    count: int
    evidence: Evidence

    @property
    def numbers(self) -> tuple[int, int, int]:
        """The three numbers, without where they stand."""
        return self.inside, self.outside, self.count

    @property
    def is_everything(self) -> bool:
        """Every id is itself: the initial user name space."""
        return self.numbers == (0, 0, ALL_IDS)


def id_ranges(lines: Iterable[Line]) -> tuple[IdRange, ...]:
    """The rows of uid_map or gid_map (user_namespaces(7)).

    Raises:
        ParseError: a row that is not three numbers.
    """
    return tuple(_row(line) for line in lines)


def asked_ranges(settings: Iterable[Setting], kind: str) -> tuple[IdRange, ...]:
    """What `lxc.idmap` lines ask for users (`u`) or groups (`g`); an empty value takes back those before it."""
    found: tuple[IdRange, ...] = ()
    for setting in settings:
        if setting.key != "lxc.idmap":
            continue
        match = _ASKED.fullmatch(setting.value.strip())
        if not setting.value:
            found = ()
        elif match and match[1] in (kind, "b"):
            found = (*found, _range(match.groups()[1:], setting.at))
    return found


def joined(ranges: Iterable[IdRange]) -> tuple[tuple[int, int, int], ...]:
    """The map in its shortest form, so that two ways of writing it are equal."""
    rows: list[tuple[int, int, int]] = []
    for inside, outside, count in sorted(one.numbers for one in ranges):
        if rows and (rows[-1][0] + rows[-1][2], rows[-1][1] + rows[-1][2]) == (inside, outside):
            rows[-1] = (rows[-1][0], rows[-1][1], rows[-1][2] + count)
        else:
            rows.append((inside, outside, count))
    return tuple(rows)


def _row(line: Line) -> IdRange:
    match = _ROW.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "three numbers of an id map")
    return _range(match.groups(), line.evidence)


def _range(numbers: Iterable[str], at: Evidence) -> IdRange:
    inside, outside, count = (int(number) for number in numbers)
    return IdRange(inside=inside, outside=outside, count=count, evidence=at)
