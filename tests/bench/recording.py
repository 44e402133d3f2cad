"""From sources with their output to a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from gapline.orchestrator.collect.fill import shown
from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.source import Source
from gapline.orchestrator.snapshot import SnapshotWriter

_VERSION = "0"  # no audit made it
_CREATED = datetime(2026, 11, 30, 6, 40, tzinfo=UTC)

Outputs = Mapping[str, tuple[Mapping[Source, str], Binding | None]]
"""By target: what its sources print, and for a container what their placeholders stand for."""


def write(path: Path, outputs: Outputs) -> None:
    """Write a new snapshot; it is marked as synthetic."""
    writer = SnapshotWriter(path, version=_VERSION, created=_CREATED, synthetic=True)
    for target, (printed, binding) in outputs.items():
        writer.write(target, (_capture(target, source, text, binding) for source, text in printed.items()))
    writer.finish()


def _capture(target: str, source: Source, text: str, binding: Binding | None) -> Capture:
    return Capture(target, source.key, shown(Item(target, source, binding)), text.encode())
