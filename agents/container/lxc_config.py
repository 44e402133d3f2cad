"""The configuration of a plain LXC container: /var/lib/lxc/<NAME>/config.

Line form as in LXC's confile.c: blanks around key and value do not count, `#` starts a comment only at the beginning
of a line, one pair of quotes around a value is taken off. `lxc.include` is listed, not followed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gapline.agents.container.setting import Setting, setting
from gapline.orchestrator.model.capture import Line

_QUOTES = ("'", '"')


@dataclass(frozen=True, slots=True)
class LxcConfig:
    """All settings in order, and the lines that are none."""

    settings: tuple[Setting, ...]
    ignored: tuple[Line, ...]


def parse_lxc(lines: Iterable[Line]) -> LxcConfig:
    """Sort the lines of a configuration file."""
    settings: list[Setting] = []
    ignored: list[Line] = []
    for line in lines:
        text = line.text.strip()
        if not text or text.startswith("#"):
            continue
        key, equals, value = text.partition("=")
        if equals and key.strip().startswith("lxc."):
            settings.append(setting(key.strip(), _unquoted(value.strip()), line))
        else:
            ignored.append(line)
    return LxcConfig(tuple(settings), tuple(ignored))


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] in _QUOTES and value[-1] == value[0]:
        return value[1:-1]
    return value
