"""How many bytes of a target's own words a page may hold.

One page must stay usable for a hundred targets, each of which can be talkative or malicious: 150 kB of evidence per
target, 10 MB in all. What no longer fits is in the snapshot and in `run.json`, and the page says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from gapline.reports.visible import visible

PER_TARGET = 150_000
FLEET = 100  # targets that share what one page may hold; larger fleets have larger pages
FLEET_EVIDENCE = 4_000_000
FLEET_FACTS = 2_000_000


def size(texts: Iterable[str]) -> int:
    """Bytes that the texts take in a page, escaped."""
    return len(escape(visible("".join(texts))).encode())


class Allowance:
    """What may still be embedded, per target. Asked in the order of importance."""

    __slots__ = ("_left", "_whole")

    def __init__(self, targets: int, fleet: int) -> None:
        self._whole = min(PER_TARGET, fleet // min(max(targets, 1), FLEET))
        self._left: dict[str, int] = {}

    def left(self, target: str) -> int:
        """How many bytes could still be taken."""
        return self._left.get(target, self._whole)

    def take(self, target: str, amount: int) -> bool:
        """Whether that many bytes of the target still fit; if so, they are spent."""
        left = self.left(target)
        if amount <= left:
            self._left[target] = left - amount
        return amount <= left
