"""What a plain YAML scalar means: the YAML 1.2 core schema, minus everything that readers disagree on.

YAML 1.1 readers (PyYAML, Ruby, older Go) take ``no`` for false, ``0777`` for 511, ``12:30:00`` for 45000 and
``1_000`` for 1000; YAML 1.2 readers do not. Whoever writes one of them unquoted may mean either, so it is refused.
Sources: https://yaml.org/type/ (1.1: bool, int, float) and YAML 1.2.2 §10.3.2 (core schema).
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD_BOOLEAN = re.compile(r"(?:yes|no|on|off)", re.IGNORECASE)
_OLD_NUMBER = re.compile(
    r"""[-+]?(?: 0[0-9][0-9_]*                             # octal in 1.1, decimal in 1.2
        | 0b[01_]+                                         # binary in 1.1, a word in 1.2
        | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?      # base 60 in 1.1, a word in 1.2
        | (?=[0-9._]*_)[0-9][0-9_]*(?:\.[0-9_]*)?          # digit groups in 1.1, a word in 1.2
        )""",
    re.VERBOSE | re.ASCII,
)
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST_NUMBER = 40  # characters


class AmbiguousError(Exception):
    """A plain scalar that has no single meaning. The message says why; `hint` says what to write instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@lru_cache(maxsize=4096)  # in a fleet the same keys and words come again and again
def plain_value(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar.

    Raises:
        AmbiguousError: YAML 1.1 and 1.2 readers differ on it, or it is a number that cannot be compared.
    """
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first.isalpha():
        return _word(text)
    if first in "+-.0123456789":
        return _number(text)
    return text


def _word(text: str) -> str:
    if _OLD_BOOLEAN.fullmatch(text):
        meaning = "true" if text.lower() in {"yes", "on"} else "false"
        raise AmbiguousError(
            f"{text} is a word to some YAML readers and {meaning} to others",
            f'Write {meaning}, or "{text}" for the word.',
        )
    return text


def _number(text: str) -> str | int | float:
    if _OLD_NUMBER.fullmatch(text):
        raise AmbiguousError(
            f"{text[:_LONGEST_NUMBER]} is a different number, or none, depending on the YAML reader",
            "Quote it if it is a name; else write a plain decimal number (octal: 0o755).",
        )
    if _NOT_FINITE.fullmatch(text):
        raise AmbiguousError(f"{text} is not a number that anything can be compared with", "Quote it if it is a name.")
    integer = _INTEGER.fullmatch(text)
    if not integer and not _FLOAT.fullmatch(text):
        return text
    if len(text) > _LONGEST_NUMBER:
        raise AmbiguousError(f"a number of {len(text)} characters", "Quote it if it is a name.")
    value = int(text, 0) if integer else float(text)
    if not math.isfinite(value):
        raise AmbiguousError(f"{text} is too large a number", "Quote it if it is a name.")
    return value
