"""A thousand recorded big hosts, judged and reported in one process: memory, time, size of the report."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from gapline.orchestrator.transport.ssh.replay_process import serving
from tests.bench.fan_out import audit_once, peak_memory, plan


def many_replayed(snapshot: Path, count: int) -> None:
    """Print the figures. The hosts answer over SSH from a process of their own."""
    with tempfile.TemporaryDirectory() as name, serving(snapshot, copies=count) as server:
        before = peak_memory()
        hosts = tuple(server.host(f"big-{number:04}") for number in range(1, count + 1))
        begin = time.monotonic()
        audit_once(plan(hosts), Path(name) / "run")
        wall = time.monotonic() - begin
        report = (Path(name) / "run" / "report.html").stat().st_size / 1e6
        run = (Path(name) / "run" / "run.json").stat().st_size / 1e6
        print(
            f"{count} replayed big hosts: {wall:.1f} s, peak {peak_memory():.0f} MB ({before:.0f} MB before),"
            f" report {report:.1f} MB ({report / count * 100:.2f} MB per 100), run.json {run:.1f} MB"
        )
