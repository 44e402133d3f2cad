"""Builds container root file systems from programs of this machine: small, real, without a download."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.lab.lxc.container import FIRST_UID, LabContainer, Root

_FOLDERS = ("bin", "dev", "etc", "proc", "sbin", "sys", "tmp", "usr/bin", "var", "run", "root")
# The engine holds the device open, as an inference process does, where the policy lets it.
_ENGINE = """#!/bin/sh
true <>/dev/nvidia-uvm && exec 3<>/dev/nvidia-uvm
exec sleep 86400
"""
_INITTAB = {
    Root.DASH: "null::respawn:/bin/engine\n",
    Root.BUSYBOX: "null::respawn:/bin/engine\n",
    Root.NO_SHELL: "null::respawn:/bin/sleep 86400\n",
}


def build_root(container: LabContainer, root: Path) -> None:
    """Fill `root`, owned by the container's root user."""
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy("/bin/busybox", root / "sbin/init")
    (root / "etc/inittab").write_text(_INITTAB[container.root])
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    if container.root is Root.NO_SHELL:
        os.link(root / "sbin/init", root / "bin/sleep")
    else:
        _add_shell(container.root, root)
    if container.unprivileged:
        _shift_owner(root)


def _add_shell(kind: Root, root: Path) -> None:
    for applet in subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, check=True).stdout.split():
        # `busybox` itself stays out: its presence would change how other applets start each other.
        if applet not in {"busybox", "init", "[", "test"} or (kind is Root.BUSYBOX and applet in {"[", "test"}):
            os.link(root / "sbin/init", root / "bin" / applet)
    if kind is Root.DASH:
        _replace_by_dash(root)
    (root / "bin/engine").write_text(_ENGINE)
    (root / "bin/engine").chmod(0o755)


def _replace_by_dash(root: Path) -> None:
    (root / "bin/sh").unlink()
    shutil.copy("/bin/dash", root / "bin/sh")
    libraries = subprocess.run(["ldd", "/bin/dash"], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"(/\S+) \(0x", libraries):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])


def _shift_owner(root: Path) -> None:
    for folder, folders, files in os.walk(root):
        for name in (".", *folders, *files):
            os.chown(Path(folder, name), FIRST_UID, FIRST_UID, follow_symlinks=False)
