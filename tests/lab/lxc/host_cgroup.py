"""The cgroup of the real host below which a whole lab lives, so that nothing of it touches the host's own tree."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

_PATIENCE = 10.0  # seconds until the kernel has emptied the cgroups of killed processes


def unified_mount() -> Path | None:
    """Where this machine has a cgroup2 hierarchy, beside v1 ones or alone."""
    found = re.search(r"^\S+ (\S+) cgroup2 ", Path("/proc/self/mounts").read_text(), flags=re.MULTILINE)
    return Path(found.group(1)) if found else None


def remove(cgroup: Path) -> None:
    """Remove the emptied tree, deepest first, once the kernel lets go of it.

    Raises:
        TimeoutError: processes are left in it.
    """
    deadline = time.monotonic() + _PATIENCE
    while "populated 1" in (cgroup / "cgroup.events").read_text():
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes are left in {cgroup}")
        time.sleep(0.02)
    for folder, _, _ in os.walk(cgroup, topdown=False):
        Path(folder).rmdir()
