"""GRUB's menu, and which of its entries a default names.

A default is a place counted from 0, an entry's id or its title, with `>` between a submenu and what is in it; GRUB
takes the first entry where it finds none of that name (GRUB manual, "default"; grub-core/normal/menu.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Entry:
    """An entry or a submenu as it is read."""

    depth: int
    submenu: bool
    id: str
    title: str
    kernel: str | None = None
    below: list[Entry] = field(default_factory=list)


def tree(entries: Sequence[Entry]) -> list[Entry]:
    """The entries of the first level, with the others below their submenus."""
    top: list[Entry] = []
    above: list[Entry] = []
    for entry in entries:
        del above[entry.depth :]
        (above[-1].below if above else top).append(entry)
        if entry.submenu:
            above.append(entry)
    return top


def chosen(menu: Sequence[Entry], default: str) -> Entry | None:
    """The entry that the default names; None where there is no such entry."""
    first, _, rest = default.partition(">")
    entry = _named(menu, first.strip())
    if entry is None or not (rest and entry.submenu):
        return entry
    return chosen(entry.below, rest)


def _named(menu: Sequence[Entry], name: str) -> Entry | None:
    if name.isdigit():
        return menu[int(name[:6])] if int(name[:6]) < len(menu) else None
    return next((entry for entry in menu if name in {entry.id, entry.title}), None)
