"""What a container's configuration asks for in numbers, by the rules of Proxmox VE and LXC."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gapline.agents.container.configuration_fact import Configuration, Form
from gapline.agents.container.setting import Setting
from gapline.orchestrator.model.evidence import Evidence

MIB = 1 << 20
_SIZE = re.compile(r"([0-9]{1,18})([KMGT]?)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A number that is asked for, None for no limit, and the line that asks; no line where a default does."""

    value: float | None
    at: Evidence | None


def memory(fact: Configuration) -> Wanted | None:
    """Bytes for memory.max; None where the file does not say, or not in a form that is known."""
    return _raw_size(fact, "lxc.cgroup2.memory.max") or _mib(fact, "memory")


def swap(fact: Configuration) -> Wanted | None:
    """Bytes for memory.swap.max."""
    return _raw_size(fact, "lxc.cgroup2.memory.swap.max") or _mib(fact, "swap")


def cpus(fact: Configuration) -> Wanted | None:
    """CPUs' worth of time; `cpulimit` 0, and no `cpulimit` at all, is no quota (pve-container, LXC.pm)."""
    raw = _raw(fact, "lxc.cgroup2.cpu.max")
    if raw:
        quota, _, period = raw.value.partition(" ")
        if quota == "max":
            return Wanted(None, raw.at)
        parts = [int(text) for text in (quota, period or "100000") if re.fullmatch(r"[1-9][0-9]{0,11}", text)]
        return Wanted(parts[0] / parts[1], raw.at) if len(parts) == 2 else None  # noqa: PLR2004  # quota and period
    key = fact.setting("cpulimit")
    if key is None:
        return Wanted(None, None) if fact.form is Form.PROXMOX else None
    if not _NUMBER.fullmatch(key.value):
        return None
    return Wanted(int(100_000 * float(key.value)) / 100_000 or None, key.at)


def cores(fact: Configuration) -> Wanted | None:
    """How many CPUs Proxmox VE picks; None where a raw list names them, or nothing is asked."""
    key = fact.setting("cores")
    if key is None or _raw(fact, "lxc.cgroup2.cpuset.cpus") or not re.fullmatch(r"[1-9][0-9]{0,4}", key.value):
        return None
    return Wanted(int(key.value), key.at)


def _raw(fact: Configuration, key: str) -> Setting | None:
    """The last line of a raw key: it comes after what Proxmox VE generates from its own keys."""
    return next((s for s in reversed(fact.raw) if s.key == key), None)


def _raw_size(fact: Configuration, key: str) -> Wanted | None:
    raw = _raw(fact, key)
    if raw is None:
        return None
    if raw.value == "max":
        return Wanted(None, raw.at)
    match = _SIZE.fullmatch(raw.value)
    return Wanted(int(match[1]) << 10 * " KMGT".index(match[2].upper() or " "), raw.at) if match else None


def _mib(fact: Configuration, name: str) -> Wanted | None:
    key = fact.setting(name)
    return Wanted(int(key.value) * MIB, key.at) if key and re.fullmatch(r"[0-9]{1,9}", key.value) else None
