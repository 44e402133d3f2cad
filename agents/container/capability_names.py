"""Capabilities by their bits (Linux, include/uapi/linux/capability.h)."""

from __future__ import annotations

_NAMES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
    *("LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
    *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"),
    *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
    *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"),
    "CHECKPOINT_RESTORE",
)


def held(mask: int) -> tuple[str, ...]:
    """The names of the bits that are set; a bit that has no name yet is `cap_N`."""
    return tuple(_name(bit) for bit in range(mask.bit_length()) if mask >> bit & 1)


def has(mask: int, name: str) -> bool:
    """Whether the capability of that name is in the mask."""
    return bool(mask >> _NAMES.index(name) & 1)


def lacking(mask: int) -> tuple[str, ...]:
    """The names of the known capabilities that are not in the mask."""
    return tuple(name for bit, name in enumerate(_NAMES) if not mask >> bit & 1)


def _name(bit: int) -> str:
    return _NAMES[bit] if bit < len(_NAMES) else f"cap_{bit}"
