"""Where Gapline keeps what outlives a command, by the platform's convention."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path, user_state_path


def state_path() -> Path:
    """The directory for runs; `GAPLINE_STATE` overrides the platform's choice."""
    chosen = os.environ.get("GAPLINE_STATE")
    return Path(chosen).expanduser() if chosen else user_state_path("gapline", appauthor=False)


def cache_path() -> Path:
    """The directory for what can be made again at any time; `GAPLINE_CACHE` overrides the platform's choice."""
    chosen = os.environ.get("GAPLINE_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("gapline", appauthor=False)
