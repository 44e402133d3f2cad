"""What LXC makes of a list of device rules on cgroup v2: a pure model of the program it loads into the kernel.

It follows LXC's cgroup2_devices.c and was compared with the kernel's answers for thousands of random lists:

- A bare ``a`` sets the type of the list and clears all rules before it.
- In an allow-list only `allow` rules decide, in a deny-list only `deny` rules; the others are skipped. A twin with
  the same numbers and the same spelling of the access flips the earlier rule instead.
- A list without rules loads no program, and without a program everything is allowed.
- A rule that matches everything makes the kernel refuse the program, and the container does not start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gapline.agents.container.device_rule import Device, PathRule, Rule, Whole
from gapline.orchestrator.model.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Clear:
    """An empty value: takes back every earlier rule of the same key."""

    allow: bool


@dataclass(frozen=True, slots=True)
class Unread:
    """Rules of a file that was not read stand here."""

    at: Evidence


Step = Whole | Rule | PathRule | Clear | Unread


@dataclass(frozen=True, slots=True)
class DevicePolicy:
    """The list as LXC keeps it. `unread` holds what it may contain besides."""

    allow_list: bool
    rules: tuple[Rule, ...]
    unread: tuple[Evidence, ...] = ()

    def allows(self, device: Device, access: str = "rw") -> bool | None:
        """Whether the container may use the device; None when rules that were not read could decide it."""
        if self.unread:
            return None
        return not self.rules or (self.deciding(device, access) is not None) is self.allow_list

    def deciding(self, device: Device, access: str = "rw") -> Rule | None:
        """The rule that decides about a device; None when the list's default does."""
        return next((rule for rule in self.active if rule.matches(device, access)), None)

    @property
    def active(self) -> tuple[Rule, ...]:
        """The rules that are not skipped."""
        return tuple(rule for rule in self.rules if rule.allow is self.allow_list)

    @property
    def skipped(self) -> tuple[Rule, ...]:
        """The rules that have no effect in a list of this type."""
        return tuple(rule for rule in self.rules if rule.allow is not self.allow_list)

    @property
    def refused(self) -> Rule | None:
        """The rule for which the kernel refuses the whole program ("unreachable insn"), if there is one."""
        return next((rule for rule in self.active if rule.unconditional), None)


def build_policy(steps: Iterable[Step], find: Callable[[str], Device | None]) -> DevicePolicy:
    """Apply rules in their order. `find` gives the numbers of a node on the host; a missing node is no rule."""
    allow_list = True
    rules: list[Rule] = []
    unread: list[Evidence] = []
    for step in _without_cleared(steps):
        match step:
            case Whole(allow=allow):
                allow_list, rules, unread = not allow, [], []
            case Unread(at=at):
                unread.append(at)
            case PathRule(path=path, access=access, at=at) if (device := find(path)) is not None:
                found = Rule(allow=True, type=device.type, major=device.major, minor=device.minor, access=access, at=at)
                _add(rules, found)
            case Rule():
                _add(rules, step)
            case _:
                pass
    return DevicePolicy(allow_list, tuple(rules), tuple(unread))


def _without_cleared(steps: Iterable[Step]) -> tuple[Step, ...]:
    """LXC clears while it reads the file, so a cleared ``a`` leaves no trace in the type of the list."""
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, Clear):
            kept = [earlier for earlier in kept if _key(earlier) is not step.allow]
        else:
            kept.append(step)
    return tuple(kept)


def _key(step: Step) -> bool | None:
    return step.allow if isinstance(step, Whole | Rule) else True if isinstance(step, PathRule) else None


def _add(rules: list[Rule], rule: Rule) -> None:
    """A twin takes the earlier rule's place."""
    for place, earlier in enumerate(rules):
        if earlier.is_twin(rule):
            rules[place] = rule
            return
    rules.append(rule)
