"""Placeholders and quoting: from a source's text to safe shell words, and to what a person would type."""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import TYPE_CHECKING

from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat

if TYPE_CHECKING:
    from gapline.orchestrator.collect.item import Binding, Item

_PLACEHOLDER = re.compile(r"\{(ct|init|config|cgroup)\}")
_WILDCARD = re.compile(r"([*?]+)")


def fill(text: str, binding: Binding | None) -> str:
    """The text with its placeholders filled in; one that stands for nothing, as in a stopped container, stays."""
    if binding is None or "{" not in text:
        return text
    return _PLACEHOLDER.sub(lambda match: str(getattr(binding, match[1])) or match[0], text)


def word(text: str, binding: Binding | None = None) -> str:
    """One shell word that means exactly the filled text."""
    return _quoted(fill(text, binding))


def patterns(text: str, binding: Binding | None = None) -> str:
    """Shell words for blank-separated patterns: ``*`` and ``?`` stay patterns, everything else is literal.

    Filled values are literal as well, whatever they contain; patterns are split before they are filled.
    """
    if binding is None:
        return _patterns(text)
    return " ".join(_bound_pattern(one, binding) for one in text.split())


def shown(item: Item) -> str:
    """The source as a person would type it."""
    return _shown(item.source, item.binding)


@lru_cache(maxsize=4096)
def _shown(source: Source, binding: Binding | None) -> str:
    match source:
        case File(path=path):
            return fill(path, binding)
        case Glob(pattern=pattern):
            return fill(pattern, binding)
        case Stat(patterns=several):
            return fill(several, binding)
        case Command(argv=argv):
            return shlex.join(fill(argument, binding) for argument in argv)
        case Script(name=name):
            return name


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return shlex.quote(text)


@lru_cache(maxsize=1024)
def _patterns(text: str) -> str:
    return " ".join(_pattern(one) for one in text.split())


def _bound_pattern(pattern: str, binding: Binding) -> str:
    parts = _PLACEHOLDER.split(pattern)  # literal, name, literal, name, …, literal
    return "".join(
        shlex.quote(str(getattr(binding, part))) if index % 2 else _pattern(part) for index, part in enumerate(parts)
    )


def _pattern(text: str) -> str:
    return "".join(
        part if index % 2 else (part and shlex.quote(part)) for index, part in enumerate(_WILDCARD.split(text))
    )
