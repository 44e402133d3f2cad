"""Amounts of memory as text."""

from __future__ import annotations


def size(count: int) -> str:
    """Bytes in the largest binary unit that gives at least 1."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}".replace(".0 ", " ")
    return f"{count} bytes"


def gib(kib: int) -> str:
    """Kibibytes in GiB, with one digit behind the point."""
    return f"{kib / (1 << 20):.1f} GiB"
