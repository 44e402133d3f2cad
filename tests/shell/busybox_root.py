"""A target that has nothing but a static busybox: no coreutils, no `timeout`, no GNU grep."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

BUSYBOX = "/bin/busybox"
WITHOUT = {"busybox", "timeout"}
SHARED = ("proc", "sys", "dev", "tmp")


def build(root: Path) -> Path:
    """A root file system of some kilobytes and links."""
    for folder in ("bin", "etc", *SHARED):
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy(BUSYBOX, root / "bin" / "busybox.static")
    names = subprocess.run([BUSYBOX, "--list"], check=True, capture_output=True, text=True, timeout=10).stdout.split()
    for name in set(names) - WITHOUT:
        (root / "bin" / name).symlink_to("busybox.static")
    (root / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    return root


def enter(root: Path) -> None:
    """Become a shell in it, in a mount name space of our own."""
    for folder in SHARED:
        subprocess.run(["mount", "--rbind", f"/{folder}", str(root / folder)], check=True, timeout=10)
    os.chroot(root)
    os.chdir("/")
    os.execv("/bin/sh", ["sh", "-s"])  # noqa: S606  # it is the shell  # it is the shell


if __name__ == "__main__":
    enter(Path(sys.argv[1]))
