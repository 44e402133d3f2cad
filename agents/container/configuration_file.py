"""How a container's configuration file is read: private values are replaced on the target, before anything is sent."""

from __future__ import annotations

from gapline.agents.container.setting import WITHHELD
from gapline.orchestrator.model.source import Command

_PROXMOX_KEYS = (
    *("arch", "cmode", "console", "cores", "cpulimit", "cpuunits", "debug", "delete", "dev[0-9]+", "features"),
    *("hostname", "lock", "memory", "mp[0-9]+", "nameserver", "net[0-9]+", "onboot", "ostype", "parent", "protection"),
    *("rootfs", "searchdomain", "snapstate", "snaptime", "startup", "swap", "tags", "template", "timezone", "tty"),
    *("unprivileged", "unused[0-9]+", "vmstate"),
)
_RAW_KEYS = (
    *("apparmor", "aa_profile", "arch", "autodev", "cap", "cgroup2?", "console", "devtty", "devttydir", "ephemeral"),
    *("group", "id_?map", "include", "kmsg", "limit", "log", "mount", "namespace", "net", "no_new_privs", "prlimit"),
    *("proc", "pty", "rootfs", "seccomp", "selinux", "signal", "start", "sysctl", "tty", "uts", "utsname"),
)
_KEPT = rf"({'|'.join(_PROXMOX_KEYS)}|lxc\.({'|'.join(_RAW_KEYS)})(\.[A-Za-z0-9_.-]+)?)"

SED = (
    # A secret can also be part of a value that is kept: options of a network mount, a URL with a password.
    f"s/((pass(word|wd)?|secret|token|credentials)=)[^,[:space:]]*/\\1{WITHHELD}/g",
    f"s#://[^/@[:space:]]*@#://{WITHHELD}@#g",
    f"s/^([[:space:]]*lxc\\.net(work)?\\.[^:=]*script[^:=]*[:=]).*/\\1 {WITHHELD}/",
    # `t` asks whether anything was replaced since the last `t`: ask once, so that what follows starts afresh.
    "tasked",
    ":asked",
    r"/^[[:space:]]*$/b",
    r"/^\[[A-Za-z][A-Za-z0-9:_-]*\][[:space:]]*$/b",
    rf"/^[[:space:]]*{_KEPT}[[:space:]]*[:=]/b",
    f"s/^([[:space:]]*#).*/\\1 {WITHHELD}/",
    "t",
    f"s/^([[:space:]]*[A-Za-z][A-Za-z0-9_.-]*[[:space:]]*[:=]).*/\\1 {WITHHELD}/",
    "t",
    f"s/.*/{WITHHELD}/",
)
"""Keeps every line in its place, and of the values only those of keys that are known to hold nothing private.
Notes, environments, commands and hooks are withheld. Works in GNU, busybox and BSD sed."""

_FILTERED = ("sed", "-E", *(part for expression in SED for part in ("-e", expression)), "--")

CONFIG = Command(argv=(*_FILTERED, "{config}"), root=True)
GENERATED = Command(argv=(*_FILTERED, "/var/lib/lxc/{ct}/config"), root=True)
"""What Proxmox VE made of its file at the container's last start; for plain LXC the file itself."""
