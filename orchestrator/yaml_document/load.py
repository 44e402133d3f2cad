"""From a file to nodes, strictly: one document, no duplicate keys, anchors, aliases or tags.

It works on libyaml's events and keeps its own stack, since the composer of PyYAML loses what is needed here: whether a
tag was written, where an alias stands, and how deep it recurses.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.yaml_document.faults import Faults
from gapline.orchestrator.yaml_document.node import Entry, Items, Node, Place, Scalar, Table
from gapline.orchestrator.yaml_document.scalar import AmbiguousError, plain_value

LARGEST = 8 * 1024 * 1024  # bytes; 1,000 hosts with ten settings each are 200 kB
DEEPEST = 16  # levels; our formats have six

_Loader: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Control characters, lone surrogates, marks that turn the direction of text, and the three characters that YAML
# counts as line ends and editors do not.
_UNWELCOME = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def read(path: Path) -> bytes:
    """The bytes of a file, not more than a little above the limit.

    Raises:
        ConfigError: it cannot be read; caused by the system's error.
    """
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"cannot be read: {reason}", path=path, hint="Name a file that you can read.") from error


def parse(data: bytes, path: Path, faults: Faults) -> Table:
    """The mapping that a document holds. What is wrong with single nodes goes to `faults`, and reading goes on.

    Raises:
        ConfigError: the text is not one YAML mapping; carries what `faults` held by then.
    """
    try:
        node = _Builder(path, faults).document(_decoded(data, path))
    except ConfigError as error:
        raise faults.ending_with(error) from error.__cause__
    if isinstance(node, Table):
        return node
    place = node.place if node else Place(path, 1, 1)
    found = node.shown if node else "something else"
    hint = "The first line is usually `version: 1`."
    raise faults.ending_with(place.fault(f"expected a mapping, got {found}", hint))


def _decoded(data: bytes, path: Path) -> str:
    if len(data) > LARGEST:
        raise ConfigError(f"larger than {LARGEST} bytes", path=path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place = _place_of(data[: error.start].decode("utf-8", "replace"), path)
        raise place.fault("not UTF-8", "Save the file as UTF-8.") from error
    unwelcome = _UNWELCOME.search(text)
    if unwelcome:
        place = _place_of(text[: unwelcome.start()], path)
        raise place.fault(f"the character U+{ord(unwelcome.group()):04X} has no place in this file")
    return text


def _place_of(before: str, path: Path) -> Place:
    """The place that follows a text."""
    lines = re.split(r"\r\n|\r|\n", before)
    return Place(path, len(lines), len(lines[-1]) + 1)


class _Open:
    """A list or mapping whose end has not been met. Keys and values of a mapping follow each other."""

    __slots__ = ("is_table", "nodes", "place")

    def __init__(self, place: Place, *, is_table: bool) -> None:
        self.place, self.is_table = place, is_table
        self.nodes: list[Node | None] = []


class _Builder:
    """Builds the tree of one document from events."""

    def __init__(self, path: Path, faults: Faults) -> None:
        self._path, self._faults = path, faults
        self._root = _Open(Place(path, 1, 1), is_table=False)
        self._open = [self._root]

    def document(self, text: str) -> Node | None:
        """The root; None when it was refused."""
        try:
            for event in yaml.parse(text, Loader=_Loader):
                self._take(event)
        except yaml.MarkedYAMLError as error:
            raise self._syntax(error, text) from error
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise ConfigError(f"not YAML: {error}", path=self._path) from error
        if not self._root.nodes:
            raise ConfigError("empty", path=self._path, line=1, column=1)
        return self._root.nodes[0]

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._add(self._closed(self._open.pop()))
        elif isinstance(event, yaml.AliasEvent):
            self._refuse_alias(event)
            self._add(None)
        elif isinstance(event, yaml.DocumentStartEvent) and self._root.nodes:
            raise self._place(event).fault("a second document in one file", "Use one file for each.")

    def _add(self, node: Node | None) -> None:
        self._open[-1].nodes.append(node)

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        place = self._place(event)
        if len(self._open) > DEEPEST:
            raise place.fault(f"nested deeper than {DEEPEST} levels")
        self._refuse_extras(event, place)
        self._open.append(_Open(place, is_table=isinstance(event, yaml.MappingStartEvent)))

    def _closed(self, part: _Open) -> Node:
        if part.is_table:
            return self._table(part)
        return Items(part.place, tuple(node for node in part.nodes if node is not None))

    def _table(self, part: _Open) -> Table:
        entries: dict[str, Entry] = {}
        for key, value in zip(part.nodes[::2], part.nodes[1::2], strict=True):
            if key is None:
                continue
            if not isinstance(key, Scalar) or key.value is None:
                self._faults.add(key.place.fault(f"expected a key, got {key.shown}"))
            elif key.text in entries:
                first = entries[key.text].key.place.line
                self._faults.add(key.place.fault(f"{key.shown} stands here a second time, first in line {first}"))
            else:
                entries[key.text] = Entry(key, value)
        return Table(part.place, entries)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar | None:
        place = self._place(event)
        if self._refuse_extras(event, place):
            return None
        text = event.value
        if event.implicit[0]:
            try:
                return Scalar(place, text, plain_value(text))
            except AmbiguousError as error:
                self._faults.add(place.fault(str(error), error.hint))
                return None
        unwelcome = _UNWELCOME.search(text)
        if unwelcome:
            self._faults.add(place.fault(f"the character U+{ord(unwelcome.group()):04X} has no place in a value"))
            return None
        return Scalar(place, text, text)

    def _refuse_extras(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, place: Place) -> bool:
        """Report an anchor or a tag; say whether there was one."""
        if event.tag is not None:
            tag = event.tag[:_SHOWN]
            self._faults.add(place.fault(f"the tag {tag} is not supported", "Quote a value to make it text."))
        if event.anchor is not None:
            self._faults.add(place.fault(f"the anchor &{event.anchor[:_SHOWN]} is not supported", _WRITE_OUT))
        return event.tag is not None or event.anchor is not None

    def _refuse_alias(self, event: yaml.AliasEvent) -> None:
        name = (event.anchor or "")[:_SHOWN]
        self._faults.add(self._place(event).fault(f"the alias *{name} is not supported", _WRITE_OUT))

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        return Place(self._path, mark.line + 1, mark.column + 1) if mark else Place(self._path, 1, 1)

    def _syntax(self, error: yaml.MarkedYAMLError, text: str) -> ConfigError:
        mark = error.problem_mark or error.context_mark
        message = f"not YAML: {error.problem or error.context}"
        if mark is None:
            return ConfigError(message, path=self._path)
        return Place(self._path, mark.line + 1, mark.column + 1).fault(message, _syntax_hint(error, text))


def _syntax_hint(error: yaml.MarkedYAMLError, text: str) -> str:
    """Where the construct that broke began, when that is another line; or what a tab does there."""
    broke, began = error.problem_mark, error.context_mark
    if broke and text[broke.index : broke.index + 1] == "\t":
        return "Indent with blanks, not with tabs."
    if error.context and began and broke and began.line != broke.line:
        return f"It happened {error.context} that began in line {began.line + 1}."
    return "Look for a bracket, a quote or an indentation that does not fit, here or in the line before."


_SHOWN = 40  # characters of a name in a message
_WRITE_OUT = "Write the value out; settings that all hosts share belong under `defaults`."
