"""Sentences that contain commands: what stands between backticks is a command to copy."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a sentence, or a command in it."""

    text: str
    code: bool


def prose(text: str) -> tuple[Piece, ...]:
    """The pieces of a text in order. An unpaired backtick is a backtick."""
    parts = _CODE.split(text.strip())
    return tuple(Piece(part, index % 2 == 1) for index, part in enumerate(parts) if part)
