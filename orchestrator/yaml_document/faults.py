"""All faults of a file, so that nobody has to fix them one run at a time."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.yaml_document.node import Scalar

MOST_SHOWN = 50
NEAR = 0.75  # of 1: one wrong letter in four
LONGEST_COMPARED = 64  # characters; comparing costs their square


def did_you_mean(word: str, candidates: Collection[str]) -> str:
    """A hint that names the nearest candidate, or all of them when they are few; else nothing."""
    near = nearest(word, candidates)
    if near:
        return f"Did you mean {near}?"
    few = 12
    return f"Known: {', '.join(sorted(filter(None, candidates)))}." if 0 < len(candidates) <= few else ""


def nearest(word: str, candidates: Collection[str]) -> str | None:
    """The candidate that looks most like the word, if one does."""
    if len(word) > LONGEST_COMPARED:
        return None
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    near = get_close_matches(word.casefold(), by_folded, n=1, cutoff=NEAR)
    return by_folded[near[0]] if near else None


class Faults:
    """Collects faults while reading goes on."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: list[ConfigError] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, error: ConfigError) -> None:
        """Keep a fault, or all faults of an error that carries several."""
        self._found.extend(error.faults)

    def unknown(self, what: str, key: Scalar, candidates: Collection[str]) -> None:
        """Keep "unknown <what> <key>" with the nearest candidate as the hint."""
        hint = did_you_mean(key.text, candidates) if len(self._found) < MOST_SHOWN else ""
        self.add(key.place.fault(f"unknown {what} {key.shown}", hint))

    def error(self) -> ConfigError:
        """All of them as one error, in the order of the file; the first fifty when there are more."""
        ordered = sorted(self._found, key=lambda fault: (str(fault.path), fault.line or 0, fault.column or 0))
        kept = ordered[:MOST_SHOWN]
        if len(ordered) > MOST_SHOWN:
            kept.append(ConfigError(f"… and {len(ordered) - MOST_SHOWN} more faults", path=ordered[0].path))
        return ConfigError.together(tuple(kept))

    def ending_with(self, error: ConfigError) -> ConfigError:
        """What was found so far, and an error after which there is nothing to go on with."""
        self.add(error)
        return self.error()

    def stop_if_any(self) -> None:
        """Raise what was found.

        Raises:
            ConfigError: there is at least one fault.
        """
        if self._found:
            raise self.error()
