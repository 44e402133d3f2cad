"""One rule of LXC's device policy, as written after `lxc.cgroup2.devices.allow` or `.deny`.

Grammar as in LXC's `device_cgroup_rule_parse` (src/lxc/cgroups/cgfsng.c): ``a`` alone, or type, blank,
``major:minor``, blank, access; or, since LXC 5.0.0 and for `allow` only, an absolute path, blank, access. Whatever
else is written is an error in LXC's log and no rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gapline.orchestrator.model.evidence import Evidence

_NUMBERED = re.compile(r"([abc])\s(\*|\d{1,10}):(\*|\d{1,10})\s([rwm]{3}|[rwm]{0,2}$)")
_PATH = re.compile(r"(/\S*)\s([rwm]{3}|[rwm]{0,2}$)")
_INT_MAX = 2**31 - 1  # lxc_safe_int refuses more


@dataclass(frozen=True, slots=True)
class Device:
    """A device as the kernel names it: type ``b`` or ``c``, and its numbers."""

    type: str
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.type} {self.major}:{self.minor}"


@dataclass(frozen=True, slots=True)
class Whole:
    """A bare ``a``: sets the type of the list and clears it. `allow` makes it a deny-list."""

    allow: bool
    at: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """Devices by type and numbers; None stands for ``*``."""

    allow: bool
    type: str  # "a", "b" or "c"
    major: int | None
    minor: int | None
    access: str  # as written, so that twins can be told
    at: Evidence | None = None

    def matches(self, device: Device, access: str) -> bool:
        """Whether the program decides this request by this rule: all of the asked access must be in the rule's."""
        return (
            self.type in ("a", device.type)
            and self.major in (None, device.major)
            and self.minor in (None, device.minor)
            and set(access) <= set(self.access)
        )

    def is_twin(self, other: Rule) -> bool:
        """Whether LXC takes the two for the same rule: equal numbers and the access in the same spelling."""
        return (self.type, self.major, self.minor, self.access) == (other.type, other.major, other.minor, other.access)

    @property
    def unconditional(self) -> bool:
        """Matches every request, so that the program's last instructions can never be reached."""
        return self.type == "a" and self.major is None and self.minor is None and set(self.access) == set("rwm")


@dataclass(frozen=True, slots=True)
class PathRule:
    """A node by its path on the host, looked up at each start of the container."""

    path: str
    access: str
    at: Evidence | None = None


def parse_rule(value: str, *, allow: bool, at: Evidence | None = None) -> Whole | Rule | PathRule | None:
    """The rule, or None for what LXC does not take."""
    if value == "a":
        return Whole(allow, at)
    if allow and (path := _PATH.match(value)):
        return PathRule(path[1], path[2], at)
    match = _NUMBERED.match(value)
    if match is None:
        return None
    major, minor = (None if number == "*" else int(number) for number in match.group(2, 3))
    if max(major or 0, minor or 0) > _INT_MAX:
        return None
    return Rule(allow, match[1], major, minor, match[4], at)
