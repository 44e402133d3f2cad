"""Texts of nvidia-smi as values, through the unit that stands with them."""

from __future__ import annotations

import re

from gapline.agents.host.smi.document import Element
from gapline.orchestrator.model.errors import ParseError

# What stands where a GPU or a driver has no such value.
_ABSENT = frozenset(
    {"", "N/A", "[N/A]", "None", "Not Supported", "[Not Supported]", "Requested functionality has been deprecated"}
    | {"Insufficient Permissions", "[Insufficient Permissions]", "Not Found"}
)
# What stands where the GPU did not answer. Single fields say it of healthy GPUs, too.
SILENT = frozenset({"Unknown Error", "[Unknown Error]", "ERR!", "GPU is lost", "[GPU is lost]", "GPU requires reset"})
_NUMBER = re.compile(r"(-?[0-9]{1,15}(?:\.[0-9]{1,6})?)\s?([A-Za-z%()]*)", re.ASCII)
_IN: dict[str, dict[str, float]] = {
    "W": {"W": 1, "mW": 1e-3, "kW": 1e3},
    "MiB": {"MiB": 1, "KiB": 1 / 1024, "GiB": 1024, "B": 1 / (1 << 20), "MB": 1},  # old drivers write MB and mean MiB
    "MHz": {"MHz": 1, "GHz": 1e3},
    "C": {"C": 1},
    "%": {"%": 1},
    "us": {"us": 1, "ms": 1e3, "s": 1e6},
    "": {"": 1},
    "x": {"x": 1},
    "bank(s)": {"bank(s)": 1},
}


def words(element: Element | None) -> str | None:
    """A text; None where there is none."""
    if element is None or element.text in _ABSENT or element.text in SILENT:
        return None
    return element.text[:200]


def quantity(element: Element | None, unit: str) -> float | None:
    """A number in that unit, whatever unit of its kind it is written in.

    Raises:
        ParseError: something else.
    """
    text = words(element)
    if element is None or text is None:
        return None
    match = _NUMBER.fullmatch(text)
    factor = _IN[unit].get(match[2]) if match else None
    if match is None or factor is None:
        raise ParseError(element.evidence, f"a number in {unit}" if unit else "a number")
    return round(float(match[1]) * factor, 6)


def count(element: Element | None, unit: str = "") -> int | None:
    """A whole number.

    Raises:
        ParseError: something else.
    """
    value = quantity(element, unit)
    return None if value is None else int(value)


def switch(element: Element | None) -> bool | None:
    """Yes or no, enabled or disabled, active or not.

    Raises:
        ParseError: another word.
    """
    text = words(element)
    if element is None or text is None:
        return None
    if text not in _SWITCH:
        raise ParseError(element.evidence, "a yes or a no")
    return _SWITCH[text]


_SWITCH = {
    "Yes": True,
    "No": False,
    "Enabled": True,
    "Disabled": False,
    "Active": True,
    "Not Active": False,
    "On": True,
    "Off": False,
}
