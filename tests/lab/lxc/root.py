"""Builds container root file systems from programs of this machine: small, real, without a download."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.lab.lxc.container import FIRST_UID, LabContainer, Root

_FOLDERS = ("bin", "dev", "etc", "proc", "sbin", "sys", "tmp", "usr/bin", "var", "run", "root")
# The engine holds a node of the driver open, as an inference process does, where the policy lets it.
_ENGINE = """#!/bin/sh
for node in /dev/nvidia-uvm /dev/nvidia-uvm-tools; do
    true <>$node && exec 3<>$node && break
done
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
    (root / "etc/inittab").write_text(_INITTAB[container.root])
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    if container.root is Root.NO_SHELL:
        shutil.copy("/bin/busybox", root / "sbin/init")
        os.link(root / "sbin/init", root / "bin/sleep")
    else:
        _add_shell(container.root, root)
    if container.unprivileged:
        _shift_owner(root)


def _add_shell(kind: Root, root: Path) -> None:
    """Busybox with its applets as links, as Alpine has it; for Debian's kind, dash in place of its shell."""
    shutil.copy("/bin/busybox", root / "bin/busybox")
    (root / "sbin/init").symlink_to("../bin/busybox")
    for applet in subprocess.run(["/bin/busybox", "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet not in {"busybox", "init"}:
            (root / "bin" / applet).symlink_to("busybox")
    if kind is Root.DASH:
        _replace_by_dash(root)
    (root / "bin/engine").write_text(_ENGINE)
    (root / "bin/engine").chmod(0o755)


def _replace_by_dash(root: Path) -> None:
    for lying in ("sh", "ash", "[", "test"):
        (root / "bin" / lying).unlink()
    shutil.copy("/bin/dash", root / "bin/dash")
    (root / "bin/sh").symlink_to("dash")
    libraries = subprocess.run(["ldd", "/bin/dash"], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"(/\S+) \(0x", libraries):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])


def _shift_owner(root: Path) -> None:
    for folder, folders, files in os.walk(root):
        for name in (".", *folders, *files):
            os.chown(Path(folder, name), FIRST_UID, FIRST_UID, follow_symlinks=False)
