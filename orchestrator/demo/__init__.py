"""The worked example: three invented hosts, as snapshots. Data only.

`fleet` is what the collector is told one morning: by `pve-a`, which nobody has tuned; by `pve-b`, after a kernel
upgrade that night; and by `pve-c`, the hardware of `pve-a` with everything put right. In `repaired` is what changed on
`pve-b` when the diff of the first finding was applied and the container started again; it is laid over the other.
"""

from __future__ import annotations

from pathlib import Path

FLEET = Path(__file__).parent / "fleet"
REPAIRED = Path(__file__).parent / "repaired"
