"""The raw line a claim rests on."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Evidence(BaseModel):
    """A line as it was read: on which target, from which source, its number counted from 1, its text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str
    source: str
    line: int | None
    text: str
