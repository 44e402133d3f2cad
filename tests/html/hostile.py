"""Runs in which every string comes from an enemy."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status

Part = TypeVar("Part", bound=BaseModel)

MARKUP = (
    "<script>alert(1)</script></style></title></textarea><img src=http://192.0.2.1/x onerror=alert(2)><h1>owned</h1>"
)
QUOTES = '"\'` onmouseover=alert(3) x="<svg/onload=alert(4)>--><!--'
TEMPLATES = "{{ 7 * 7 }} {% raw %} ${7*7} &lt;b&gt; &#60;i&#62; javascript:alert(5)"
SHAPELESS = "a\u202egnp.exe\u2066\u200b\x00\x1b[31m\x07\x9b1m\x7f\r\ufeff\ud800\udfff\U000e0041"
BLOCK = "\n\n# x\n@@ -1 +1 @@\n+<b>\n--- /etc/passwd\n" + "\\xff\\xfe\\x80"
LONG = "A" * 10_000
PAYLOADS = {
    "markup": MARKUP,
    "quotes": QUOTES,
    "templates": TEMPLATES,
    "shapeless": SHAPELESS,
    "block": BLOCK,
    "long": LONG,
}


def poisoned(part: Part, payload: str) -> Part:
    """The same value with the payload at the end of every free text in it, names of facts included."""
    names = type(part).model_fields.keys() - {"schema_"}
    return part.model_copy(update={name: _poison(getattr(part, name), payload) for name in sorted(names)})


def _poison(value: Any, payload: str) -> Any:
    match value:
        case Enum():
            return value
        case str():
            return value + payload
        case BaseModel():
            return poisoned(value, payload)
        case tuple() | list():
            return type(value)(_poison(one, payload) for one in value)
        case dict():
            return {_key(key, payload): _poison(one, payload) for key, one in value.items()}
        case _:
            return value


def _key(key: Any, payload: str) -> Any:
    """Names of facts; the summary counts under names of our own."""
    return key if key in {*Severity, *Status} else f"{key}{payload}"
