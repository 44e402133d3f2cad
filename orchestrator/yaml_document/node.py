"""The nodes of a YAML document, each with the place it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gapline.orchestrator.model.errors import ConfigError

SHOWN_WIDTH = 60


class Place(NamedTuple):
    """A position in a file; line and column count from 1, columns in characters."""

    path: Path
    line: int
    column: int

    def fault(self, message: str, hint: str = "") -> ConfigError:
        """An error that points here."""
        return ConfigError(message, path=self.path, line=self.line, column=self.column, hint=hint)

    @property
    def cited(self) -> str:
        """``fleet.yaml:12``, as exports cite it."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value, and the text it was written as."""

    place: Place
    text: str
    value: str | int | float | bool | None

    @property
    def shown(self) -> str:
        """How messages name it."""
        if self.value is None:
            return "nothing"
        return repr(self.text if len(self.text) <= SHOWN_WIDTH else self.text[:SHOWN_WIDTH] + "…")


@dataclass(frozen=True, slots=True)
class Items:
    """A list. Items that were refused are left out."""

    place: Place
    values: tuple[Node, ...]
    shown = "a list"


@dataclass(frozen=True, slots=True)
class Entry:
    """A key and its value; None is a value that was refused, with its fault already reported."""

    key: Scalar
    value: Node | None


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping by the text of its keys."""

    place: Place
    entries: Mapping[str, Entry]
    shown = "a mapping"


Node = Scalar | Items | Table
