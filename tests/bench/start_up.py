"""How long a person waits for help, against an empty interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

_ROUNDS = 15


def start_up() -> None:
    """Print the medians, alternating."""
    commands = {
        "python -c pass": (sys.executable, "-c", "pass"),
        "gapline --help": (sys.executable, "-m", "gapline", "--help"),
        "gapline audit --help": (sys.executable, "-m", "gapline", "audit", "--help"),
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(_ROUNDS):
        for name, command in commands.items():
            begin = time.monotonic()
            subprocess.run(command, capture_output=True, check=True)
            times[name].append(time.monotonic() - begin)
    print("  ".join(f"{name}: {statistics.median(values) * 1000:.0f} ms" for name, values in times.items()))
