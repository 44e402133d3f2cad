"""The container configuration of Proxmox VE: /etc/pve/lxc/<ID>.conf.

The line forms and their order are those of `parse_pct_config` in pve-container's src/PVE/LXC/Config.pm. What is in
force stands before the first section; `[pve:pending]` waits for a restart, every other section is a snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gapline.agents.container.setting import Setting, setting
from gapline.orchestrator.model.capture import Line

_PENDING = re.compile(r"\[pve:pending\]\s*", re.IGNORECASE)
_SNAPSHOT = re.compile(r"\[([a-z][a-z0-9_\-]+)\]\s*", re.IGNORECASE)
_RAW = re.compile(r"(lxc\.[a-z0-9_\-.]+)(?::|\s*=)\s*(.*?)\s*")
_NOTE = re.compile(r"description:\s*(.*\S)\s*")
_STATE = re.compile(r".*snapstate:\s*(?:prepare|delete)\s*")
_KEY = re.compile(r"([a-z][a-z_]*\d*):\s*(.+?)\s*")

_RAW_KEYS = re.compile(
    r"lxc\.(?:cgroup2?|prlimit|limit|net|network|hook|apparmor|mount|cap|seccomp|selinux|console|signal|init|tty|pty"
    r"|uts|rootfs|devtty|environment|sysctl|proc|namespace|no_new_privs|idmap|id_map|include|arch|autodev|kmsg|start"
    r"|group|log|loglevel|logfile|monitor|execute|utsname|aa_profile|aa_allow_incomplete|se_context|pts|devttydir"
    r"|init_cmd|haltsignal|rebootsignal|stopsignal)(?:\..*)?"
)
"""First words of raw keys that exist in LXC. Proxmox VE drops what it does not know; a key that is outside even this
wider list is certainly dropped."""


@dataclass(frozen=True, slots=True)
class ProxmoxConfig:
    """The file by what is in force, what is pending, and what only a snapshot remembers."""

    keys: tuple[Setting, ...]
    raw: tuple[Setting, ...]  # lxc.* in the order of the file
    pending: tuple[Setting, ...]
    snapshots: tuple[str, ...]
    ignored: tuple[Line, ...]  # lines in force that Proxmox VE warns about and drops


@dataclass(slots=True)
class _Reading:
    keys: list[Setting] = field(default_factory=list)
    raw: list[Setting] = field(default_factory=list)
    pending: list[Setting] = field(default_factory=list)
    snapshots: list[str] = field(default_factory=list)
    ignored: list[Line] = field(default_factory=list)
    section: str = "current"

    def take(self, line: Line) -> None:
        text = line.text
        if not text.strip() or text.startswith("#") or self._opens_section(text) or self.section == "snapshot":
            return
        found = _setting(line)
        if self.section == "pending":
            self.pending.extend((found,) if found else ())
        elif found is None:
            if not _NOTE.fullmatch(text) and not _STATE.fullmatch(text):
                self.ignored.append(line)
        else:
            self._in_force(found, line)

    def _opens_section(self, text: str) -> bool:
        if _PENDING.fullmatch(text):
            self.section = "pending"
        elif match := _SNAPSHOT.fullmatch(text):
            self.section = "snapshot"
            self.snapshots.append(match.group(1))
        else:
            return False
        return True

    def _in_force(self, found: Setting, line: Line) -> None:
        if not found.key.startswith("lxc."):
            self.keys.append(found)
        elif _RAW_KEYS.fullmatch(found.key):
            self.raw.append(found)
        else:
            self.ignored.append(line)


def _setting(line: Line) -> Setting | None:
    if match := _RAW.fullmatch(line.text):
        return setting(match.group(1), match.group(2), line)
    if _NOTE.fullmatch(line.text) or _STATE.fullmatch(line.text):
        return None
    if match := _KEY.fullmatch(line.text):
        return setting(match.group(1), match.group(2), line)
    return None


def parse_proxmox(lines: Iterable[Line]) -> ProxmoxConfig:
    """Sort the lines of a configuration file. A `#` line is a note, never a setting that was switched off."""
    reading = _Reading()
    for line in lines:
        reading.take(line)
    return ProxmoxConfig(
        keys=tuple(reading.keys),
        raw=tuple(reading.raw),
        pending=tuple(reading.pending),
        snapshots=tuple(reading.snapshots),
        ignored=tuple(reading.ignored),
    )


def properties(value: str, default_key: str = "") -> dict[str, str]:
    """A property string such as ``/dev/nvidia0,mode=0666``; a part without ``=`` belongs to `default_key`."""
    pairs = (part.partition("=") if "=" in part else (default_key, "=", part) for part in value.split(","))
    return {key.strip(): text.strip() for key, _, text in pairs if key}


def flag(value: str) -> bool:
    """A boolean as `check_type` in pve-container accepts it."""
    return value.lower() in {"1", "on", "yes", "true"}
