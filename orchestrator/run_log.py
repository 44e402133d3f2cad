"""The log of a run: one JSON object per line, with target and agent bound, and without secrets."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from structlog.typing import EventDict, WrappedLogger

_WORDS = r"pass(?:word|phrase|wd)|secret|token|api[_-]?key|access[_-]?key|authorization|credential"
_SECRET_NAME = re.compile(rf"{_WORDS}|(?:^|_)pass$", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    rf"([\w-]*(?:{_WORDS})[\w-]*\s*[=:]\s*(?:bearer\s+|basic\s+)?)\S+"  # NAME=value, name: value, headers
    rf"|(--(?:{_WORDS})\s+)\S+|(\bbearer\s+)\S+|(://[^/\s:@]*:)[^@\s/]+(?=@)",  # options, tokens, URLs
    re.IGNORECASE,
)
_WITHHELD = "[withheld]"


@contextmanager
def logged(path: Path) -> Iterator[None]:
    """Write the events of the run to a file that only its owner can read."""
    path.touch(mode=0o600)
    with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                without_secrets,
                structlog.processors.JSONRenderer(),
            ],
            logger_factory=structlog.WriteLoggerFactory(file=file),
            wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
            cache_logger_on_first_use=False,
        )
        try:
            yield
        finally:
            _drop_everything()


def quiet_unless_logged() -> None:
    """Drop events where no run is logged; structlog would print them to standard output."""
    if not structlog.is_configured():
        _drop_everything()


def _drop_everything() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))  # nothing of ours is


def without_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Withhold values that are secret by their name or by their form, at any depth."""
    return {key: _harmless(key, value) for key, value in event.items()}


def _harmless(name: str, value: object) -> object:
    if _SECRET_NAME.search(name):
        return _WITHHELD
    match value:
        case str():
            return _SECRET_TEXT.sub(lambda found: f"{next(filter(None, found.groups()))}{_WITHHELD}", value)
        case dict():
            return {key: _harmless(str(key), one) for key, one in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_harmless(name, one) for one in value]
        case bool() | int() | float() | None:
            return value
        case _:
            return _harmless(name, str(value))
