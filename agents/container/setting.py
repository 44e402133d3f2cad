"""One setting of a container's configuration file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.evidence import Evidence

WITHHELD = "[withheld]"
"""What stands in a capture for a value that was replaced on the target before it was sent."""


class Setting(BaseModel):
    """A key and its value as the file gives them, with the line they stand on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    value: str
    at: Evidence

    @property
    def line(self) -> int:
        """The line number, counted from 1."""
        return self.at.line or 0


def setting(key: str, value: str, line: Line) -> Setting:
    """A setting found on a line."""
    return Setting(key=key, value=value, at=line.evidence)


def in_file(line: Line, path: str) -> Line:
    """The line as part of the file itself: a filter such as sed printed it, but kept all line numbers."""
    return Line(line.target, path, line.number, line.text)
