"""What of the kernel's log leaves the target, with stand-ins for dmesg and journalctl and the real shells and awks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gapline.agents.host.log.source import KERNEL_LOG

BOOT = "[    0.000000] Linux version 6.14.11-4-pve\n[    0.000000] Command line: password=planted\n"
XID = "[  912.402177] NVRM: Xid (PCI:0000:41:00): 119, pid=7340, name=nvidia-smi, Timeout after 45s\n"
OTHERS = """\
[    1.000000] usb 1-1: SerialNumber: planted
[    2.000000] pci 0000:41:00.0: [10de:2bb5] type 00 class 0x030200 PCIe Legacy Endpoint
[    2.100000] pci 0000:41:00.0: BAR 1 [mem size 0x10000000]: failed to assign
[    2.200000] pci 0000:04:00.0: BAR 1 [mem size 0x10000000]: failed to assign
[  912.400000] NVRM: GPU Board Serial Number: 165planted
[  913.000000] audit: type=1400 comm="planted"
"""
AWKS = [pytest.param(name, id=name) for name in ("mawk", "gawk", "busybox")]


@pytest.fixture(params=AWKS)
def programs(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with one of the awks that a target may have, or a skip where it is not installed."""
    found = shutil.which(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed")
    (tmp_path / "awk").symlink_to(found)
    return tmp_path


def printing(folder: Path, name: str, text: str, ending: str = "exit 0") -> None:
    """A program of that name that prints the text."""
    (folder / f"{name}.txt").write_text(text)
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat {folder}/{name}.txt\n{ending}\n")
    program.chmod(0o755)


def collected(folder: Path) -> subprocess.CompletedProcess[str]:
    """The script with those programs first."""
    argv = ["sh", "-c", KERNEL_LOG.text]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env={"PATH": f"{folder}:/usr/bin:/bin"})


def test_only_what_is_judged_leaves(programs: Path) -> None:
    """GPUs, their windows and Xid; no command line, no serial numbers, no other device's windows."""
    printing(programs, "dmesg", BOOT + OTHERS + XID)
    lines = collected(programs).stdout.splitlines()
    assert [line[7:20] for line in lines if line.startswith("line|")] == [
        "   2.000000] ",
        "   2.100000] ",
        " 912.402177] ",
    ]
    assert lines[-1].split("|")[:4] == ["end", "dmesg", "whole", "9"]


def test_floods_are_counted(programs: Path) -> None:
    """Forty lines of one message, then the number and the last; another message is not touched."""
    flood = "".join(f"[ 1{n:03}.000000] NVRM: Xid (PCI:0000:21:00): 31, pid={n}, Ch 8\n" for n in range(500))
    printing(programs, "dmesg", BOOT + flood + XID)
    lines = collected(programs).stdout.splitlines()
    assert sum(line.startswith("line|") for line in lines) == 41
    assert [line for line in lines if line.startswith("more|")] == [
        "more|460|[ 1499.000000] NVRM: Xid (PCI:0000:21:00): 31, pid=499, Ch 8"
    ]


def test_journal_where_the_ring_has_wrapped(programs: Path) -> None:
    """The journal's name of host and program is left out."""
    printing(programs, "dmesg", "[ 9000.000000] something late\n")
    printing(programs, "journalctl", (BOOT + XID).replace("] ", "] pve1 kernel: "))
    lines = collected(programs).stdout.splitlines()
    assert lines[0] == f"line|{XID.rstrip()}"
    assert lines[-1].startswith("end|journal|whole|3|")


def test_part_where_neither_is_whole(programs: Path) -> None:
    """What there is, and that it is not all."""
    printing(programs, "dmesg", "[ 9000.000000] something late\n" + XID)
    printing(programs, "journalctl", "")
    assert collected(programs).stdout.splitlines()[-1].startswith("end|dmesg|part|2|")


def test_refused(programs: Path) -> None:
    """Nothing was read: a status and the reason, not an empty log."""
    printing(programs, "dmesg", "", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1")
    printing(programs, "journalctl", "")
    done = collected(programs)
    assert done.returncode != 0
    assert "Operation not permitted" in done.stderr


def test_cleared(programs: Path) -> None:
    """`dmesg -C` leaves an empty ring; that is no clean log either."""
    printing(programs, "dmesg", "")
    printing(programs, "journalctl", "")
    done = collected(programs)
    assert (done.returncode, done.stderr) == (1, "the kernel log is empty\n")
