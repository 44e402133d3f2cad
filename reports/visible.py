"""Text from targets made harmless to look at.

Escaping keeps text from becoming markup. It does not keep it from lying: a right-to-left override reverses what a
reader sees, an escape sequence or a NUL vanishes. Here every character that has no shape of its own gets one.
"""

from __future__ import annotations

_CONTROL_PICTURES = 0x2400  # Unicode block that draws U+0000 … U+001F, in the same order
_KEPT = "\t\n"
_SHAPELESS = (
    range(0x80, 0xA0),  # C1: 0x9B alone starts an escape sequence on some terminals
    (0xAD, 0x061C, 0x180E, 0xFEFF, 0xFFFE, 0xFFFF),
    range(0x200B, 0x2010),  # zero width characters and direction marks
    range(0x2028, 0x202F),  # line separators, direction embeddings and overrides
    range(0x2060, 0x2070),  # invisible operators and direction isolates
    range(0xD800, 0xE000),  # lone surrogates: not encodable, so they would break the writing of the file
    range(0xFFF9, 0xFFFC),  # annotation marks
    range(0xE0000, 0xE0080),  # invisible tag characters
)
_SHAPES: dict[int, str] = (
    {code: chr(_CONTROL_PICTURES + code) for code in range(0x20) if chr(code) not in _KEPT}
    | {0x7F: "␡"}
    | {code: f"⟨U+{code:04X}⟩" for group in _SHAPELESS for code in group}
)


def visible(text: str) -> str:
    """The text with a visible sign for each character that cannot be seen; line feeds and tabs stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_SHAPES)


def clipped(text: str, width: int) -> str:
    """The text, cut after `width` characters, and then saying how many are missing."""
    return text if len(text) <= width else f"{text[:width]}… ({len(text) - width:,} more characters)"
