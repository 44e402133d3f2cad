"""The XML of nvidia-smi as a tree whose elements know their line.

It comes from the target, so it is read with expat itself and not with a tree builder on top: a DOCTYPE that brings
declarations of its own is refused before anything in it is used, so no entity can exist, be expanded or be fetched
(expat opens no file and no connection on its own account). The plain DOCTYPE of nvidia-smi, which only names a file,
is passed over. Depth and number of elements are limited; the length is limited by the capture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence

MAX_DEPTH = 24
MAX_ELEMENTS = 60_000

# nvidia-smi prints its complaints into the same output, before, between or instead of the XML.
_MESSAGE = re.compile(r"\s*(?:Unable to determine|NVIDIA-SMI|No devices|Failed to initialize|WARNING)")


@dataclass(slots=True)
class Element:
    """One element: its text without blanks around it, and the line that opened it."""

    name: str
    line: Line
    identity: str = ""  # the attribute `id`
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def find(self, *path: str) -> Element | None:
        """The first element at the end of that path."""
        at: Element | None = self
        for name in path:
            at = next((child for child in at.children if child.name == name), None) if at else None
        return at

    def all(self, *path: str) -> tuple[Element, ...]:
        """All elements at the end of that path."""
        found: tuple[Element, ...] = (self,)
        for name in path:
            found = tuple(child for one in found for child in one.children if child.name == name)
        return found

    def walk(self) -> Iterator[Element]:
        """This element and everything in it."""
        waiting = [self]
        while waiting:
            one = waiting.pop()
            yield one
            waiting.extend(reversed(one.children))

    @property
    def evidence(self) -> Evidence:
        """Its line."""
        return self.line.evidence


def messages(capture: Capture) -> tuple[Line, ...]:
    """The lines that are nvidia-smi talking to a person."""
    return tuple(line for line in capture.lines() if _MESSAGE.match(line.text))


def document(capture: Capture) -> Element | None:
    """The root element; None when there is nothing but messages.

    Raises:
        ParseError: it is no XML, brings declarations, or is too deep or too large.
    """
    lines = [Line(line.target, line.source, line.number, _told(line.text)) for line in capture.lines()]
    if not any(line.text.strip() for line in lines):
        return None
    return _Builder(lines).build()


def _told(text: str) -> str:
    """Messages become empty lines, so that every element keeps the number of its line."""
    return "" if _MESSAGE.match(text) else text


class _Builder:
    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        self._open: list[Element] = []
        self._root: Element | None = None
        self._count = 0
        # Empty lines before the document, which XML does not allow before its declaration.
        self._skipped = next((place for place, line in enumerate(lines) if line.text.strip()), 0)
        self._parser = expat.ParserCreate(encoding="utf-8")  # whatever encoding the document claims
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters

    def build(self) -> Element:
        try:
            self._parser.Parse("\n".join(line.text for line in self._lines).encode().lstrip(), True)  # noqa: FBT003
        except expat.ExpatError as error:
            raise ParseError(self._line().evidence, f"well-formed XML ({expat.errors.messages[error.code]})") from error
        if self._root is None:
            raise self._refused("an element")
        return self._root

    def _line(self) -> Line:
        """The line that the parser has come to; what other line ends hide from the count is the last one."""
        number = min(self._parser.CurrentLineNumber + self._skipped, len(self._lines))
        return self._lines[max(number, 1) - 1]

    def _refused(self, expected: str) -> ParseError:
        return ParseError(self._line().evidence, expected)

    def _doctype(self, _name: str, _system: str | None, _public: str | None, internal: bool) -> None:  # noqa: FBT001
        if internal:
            raise self._refused("a DOCTYPE without declarations of its own")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) >= MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise self._refused(f"at most {MAX_DEPTH} levels and {MAX_ELEMENTS} elements")
        element = Element(name, self._line(), identity=attributes.get("id", ""))
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, _name: str) -> None:
        element = self._open.pop()
        element.text = element.text.strip()

    def _characters(self, data: str) -> None:
        self._open[-1].text += data
