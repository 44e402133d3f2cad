"""Typed reading of nodes. A reader turns a node into a value or raises a `ConfigError` that points at the node."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from typing import TypeVar

from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.yaml_document.faults import Faults, nearest
from gapline.orchestrator.yaml_document.node import Entry, Items, Node, Place, Scalar, Table

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
Read = Callable[[Node], T]


def text(node: Node) -> str:
    """Text that is not empty."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return node.value
    number = isinstance(node, Scalar) and node.value is not None
    raise node.place.fault(f"expected text, got {node.shown}", "Quote it if it is meant as text." if number else "")


def flag(node: Node) -> bool:
    """A truth value, written true or false."""
    if isinstance(node, Scalar) and isinstance(node.value, bool):
        return node.value
    raise node.place.fault(f"expected true or false, got {node.shown}")


def whole_number(low: int, high: int) -> Read[int]:
    """An integer between the two, both included."""

    def read(node: Node) -> int:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        hint = "Write it without quotes." if isinstance(value, str) and value.isdecimal() else ""
        raise node.place.fault(f"expected a whole number from {low} to {high}, got {node.shown}", hint)

    return read


def seconds(high: float) -> Read[float]:
    """A duration in seconds: a number above 0, up to the given one."""

    def read(node: Node) -> float:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= high:
            return float(value)
        raise node.place.fault(
            f"expected seconds, a number above 0 and up to {high:g}, got {node.shown}", "Write the bare number."
        )

    return read


def word(pattern: re.Pattern[str], what: str) -> Read[str]:
    """Text of a certain form; a bare number is taken as it was written."""

    def read(node: Node) -> str:
        if isinstance(node, Scalar) and node.value is not None and pattern.fullmatch(node.text):
            return node.text
        raise node.place.fault(f"expected {what}, got {node.shown}")

    return read


def choice(options: type[E]) -> Read[E]:
    """One of the words of an enumeration."""

    def read(node: Node) -> E:
        words = [option.value for option in options]
        if isinstance(node, Scalar) and node.text in words:
            return options(node.text)
        near = nearest(node.text, words) if isinstance(node, Scalar) else None
        hint = f"Did you mean {near}?" if near else ""
        raise node.place.fault(f"expected one of {', '.join(words)}, got {node.shown}", hint)

    return read


def listed(read: Read[T]) -> Read[tuple[T, ...]]:
    """A list whose items are read one by one; a single item counts as a list of one."""

    def read_list(node: Node) -> tuple[T, ...]:
        if not isinstance(node, Items):
            return (read(node),)
        faults = Faults()
        values: list[T] = []
        for item in node.values:
            try:
                values.append(read(item))
            except ConfigError as error:
                faults.add(error)
        faults.stop_if_any()
        return tuple(values)

    return read_list


class Section:
    """A mapping that is read key by key; nothing at all counts as an empty one. Faults are collected."""

    __slots__ = ("_entries", "_faults", "place")

    def __init__(self, node: Node, what: str, faults: Faults, known: Collection[str] | None = None) -> None:
        """Keys beyond `known` are faults; None allows any key."""
        self.place: Place = node.place
        self._faults = faults
        self._entries: dict[str, Entry] = {}
        if isinstance(node, Table):
            self._entries = dict(node.entries)
        elif not (isinstance(node, Scalar) and node.value is None):
            faults.add(node.place.fault(f"expected {what} as a mapping, got {node.shown}"))
        if known is not None:
            self._refuse_unknown(known, what)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def entries(self) -> Iterator[tuple[Scalar, Node]]:
        """Keys and values in the order of the file, without those already reported."""
        return ((entry.key, entry.value) for entry in self._entries.values() if entry.value is not None)

    def place_of(self, key: str) -> Place:
        """Where a key stands; the section itself when it is absent."""
        return self._entries[key].key.place if key in self._entries else self.place

    def get(self, key: str, read: Read[T]) -> T | None:
        """The value; None when it is absent or wrong."""
        entry = self._entries.get(key)
        if entry is None or entry.value is None:
            return None
        try:
            return read(entry.value)
        except ConfigError as error:
            self._faults.add(error)
            return None

    def need(self, key: str, read: Read[T], hint: str = "") -> T | None:
        """As `get`, and its absence is a fault."""
        if key not in self._entries:
            self._faults.add(self.place.fault(f"{key} is missing", hint))
        return self.get(key, read)

    def section(self, key: str, what: str, known: Collection[str] | None = None) -> Section | None:
        """The mapping below a key; None when it is absent."""
        return self.get(key, lambda node: Section(node, what, self._faults, known))

    def _refuse_unknown(self, known: Collection[str], what: str) -> None:
        for key in [key for key in self._entries if key not in known]:
            self._faults.unknown(f"key in {what}:", self._entries.pop(key).key, known)


def versioned(root: Table, what: str, known: Collection[str], faults: Faults) -> Section:
    """The root of a file that starts with `version: 1`.

    Raises:
        ConfigError: it is of another version, so nothing else in the file can be judged.
    """
    anything = Section(root, what, faults)
    found = anything.need("version", whole_number(0, 10**9), "Write `version: 1` as the first line.")
    if found not in {None, 1}:
        place = anything.place_of("version")
        raise faults.ending_with(place.fault(f"version {found} of the format is not known", "This reads 1."))
    return Section(root, what, faults, known)
