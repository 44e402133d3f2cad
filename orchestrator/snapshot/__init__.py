"""All captures of one audit as plain files in a directory, to be read, edited, shared and judged again."""

from gapline.orchestrator.snapshot.reader import Snapshot, read
from gapline.orchestrator.snapshot.writer import SnapshotWriter

__all__ = ["Snapshot", "SnapshotWriter", "read"]
