"""Compares what came with what a case asks for, which may be less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def differences(wanted: Any, got: Any, at: str = "") -> Iterator[str]:
    """Where `got` lacks something of `wanted`: mappings may hold more, lists and values must be equal.

    ``{"contains": TEXT}`` stands for any text with TEXT in it, ``{"count": N}`` for any list of N entries.
    """
    if isinstance(wanted, dict) and isinstance(got, str) and set(wanted) == {"contains"}:
        if wanted["contains"] not in got:
            yield f"{at}: {wanted['contains']!r} is not in {got!r}"
    elif isinstance(wanted, dict) and isinstance(got, list) and set(wanted) == {"count"}:
        if len(got) != wanted["count"]:
            yield f"{at}: {len(got)} entries instead of {wanted['count']}"
    elif isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            yield from differences(value, got[key], f"{at}.{key}") if key in got else (f"{at}.{key} is missing",)
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for index, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from differences(one, other, f"{at}[{index}]")
    elif wanted != got:
        yield f"{at}: {got!r} instead of {wanted!r}"
