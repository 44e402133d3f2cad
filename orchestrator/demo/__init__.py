"""The worked example: an invented host on the morning after a kernel upgrade, as snapshots. Data only.

`fleet` is what the collector is told that morning. In `repaired` is what changed when the diff of the first finding
was applied and the container started again; it is laid over the other.
"""

from __future__ import annotations

from pathlib import Path

FLEET = Path(__file__).parent / "fleet"
REPAIRED = Path(__file__).parent / "repaired"
