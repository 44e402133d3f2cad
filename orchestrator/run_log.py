"""The log of a run: one JSON object per line, with target and agent bound, and without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog
from structlog.typing import EventDict, WrappedLogger

_SECRET_NAME = re.compile(r"pass(word|phrase)?|secret|token|api_?key|authorization|credential", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    r"(?i)(\b(?:password|passphrase|secret|token|api[_-]?key)\b\s*[=:]\s*)\S+|(\bbearer\s+)\S+|(://[^/\s:@]*:)[^@\s/]+(?=@)"
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
            cache_logger_on_first_use=False,
        )
        try:
            yield
        finally:
            structlog.reset_defaults()


def without_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Withhold values that are secret by their name or by their form."""
    return {
        key: _WITHHELD
        if _SECRET_NAME.search(key)
        else _SECRET_TEXT.sub(lambda found: (found[1] or found[2] or found[3]) + _WITHHELD, value)
        if isinstance(value, str)
        else value
        for key, value in event.items()
    }
