"""Who the host is: kind, boot, privilege, load and clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.run import TargetKind
from gapline.orchestrator.model.source import File, Script, Source

BOOT_ID = File("/proc/sys/kernel/random/boot_id")
UPTIME = File("/proc/uptime")
LOADAVG = File("/proc/loadavg")
HOSTNAME = File("/proc/sys/kernel/hostname")
IDENTITY = Script(
    "identity",
    # Sshd and sudo say whose login it is; `su` without a dash does not, but then it is root's.
    'while read -r k _ u _; do [ "$k" = Uid: ] && break; done </proc/self/status\n'
    '[ "$u" != 0 ] || LOGNAME=root\n'
    'o="uid=$u${LOGNAME:+\nuser=$LOGNAME}\nepoch=$(date +%s)"\n'
    # The mount point exists on every Proxmox VE host, also for a user who may not look into it.
    'if [ -d /etc/pve ] && command -v pveversion >/dev/null 2>&1 || [ -d /etc/pve/lxc ]; then o="$o\npve=1"; fi\n'
    "for c in lxc-info nsenter timeout perl python3; do\n"
    'if command -v "$c" >/dev/null 2>&1; then o="$o\nhas=$c"; fi; done\n'
    'echo "$o"\n',
)

SOURCES: Mapping[str, Source] = {
    "boot_id": BOOT_ID,
    "uptime": UPTIME,
    "loadavg": LOADAVG,
    "hostname": HOSTNAME,
    "identity": IDENTITY,
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What the host says about itself. None: it did not say, or in a form we do not know."""

    kind: TargetKind
    hostname: str
    boot_id: str | None
    uptime_seconds: float | None
    load: tuple[float, float, float] | None
    user: str | None
    root: bool
    epoch: int | None  # seconds, by its clock
    commands: tuple[str, ...]


def identity(captures: Mapping[str, Capture]) -> Identity:
    """Read the identity from the captures of `SOURCES`, by their names. Never raises."""
    said: dict[str, list[str]] = {}
    for line in captures["identity"].lines():
        key, _, value = line.text.partition("=")
        said.setdefault(key, []).append(value)
    epoch = _only(said, "epoch")
    return Identity(
        kind=TargetKind.PROXMOX_HOST if "pve" in said else TargetKind.LINUX_HOST,
        hostname=_matching(captures["hostname"], r"[A-Za-z0-9._-]{1,253}") or "",
        boot_id=_matching(captures["boot_id"], r"[0-9a-f-]{36}"),
        uptime_seconds=_floats(captures["uptime"], 1)[0] if _floats(captures["uptime"], 1) else None,
        load=_load(captures["loadavg"]),
        user=_only(said, "user"),
        root=_only(said, "uid") == "0",
        epoch=int(epoch) if epoch is not None and re.fullmatch(r"\d{1,11}", epoch) else None,
        commands=tuple(sorted(said.get("has", ()))),
    )


def _only(said: Mapping[str, list[str]], key: str) -> str | None:
    values = said.get(key, [])
    return values[0] if len(values) == 1 and values[0] else None


def _matching(capture: Capture, pattern: str) -> str | None:
    text = capture.first().text.strip()
    return text if re.fullmatch(pattern, text) else None


def _floats(capture: Capture, count: int) -> tuple[float, ...]:
    words = capture.first().text.split()[:count]
    if len(words) < count or not all(re.fullmatch(r"\d{1,12}(\.\d{1,6})?", word) for word in words):
        return ()
    return tuple(float(word) for word in words)


def _load(capture: Capture) -> tuple[float, float, float] | None:
    values = _floats(capture, 3)
    return (values[0], values[1], values[2]) if values else None
