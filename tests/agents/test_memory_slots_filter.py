"""What leaves a machine of dmidecode's output: sizes, places and speeds, and nothing that names a module."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gapline.agents.host.memory.slots import SLOTS, memory_slots
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import CollectError
from gapline.orchestrator.model.problem import ProblemKind

SHELLS = ["dash", "bash"]
TABLE = """\
Memory Device
\tTotal Width: 72 bits
\tData Width: 64 bits
\tSize: 64 GB
\tForm Factor: DIMM
\tLocator: P1-DIMMA1
\tBank Locator: P1_Node0_Channel0_Dimm0
\tType: DDR5
\tType Detail: Synchronous Registered (Buffered)
\tSpeed: 5600 MT/s
\tManufacturer: Planted Maker
\tSerial Number: PLANTED-SERIAL
\tAsset Tag: PLANTED-TAG
\tPart Number: PLANTED-PART
\tConfigured Memory Speed: 4800 MT/s
\tVolatile Size: 64 GB

Memory Device
\tTotal Width: Unknown
\tSize: No Module Installed
\tLocator: P1-DIMMA2
\tBank Locator: P1_Node0_Channel0_Dimm1
\tType: Unknown
\tSpeed: Unknown
\tConfigured Clock Speed: Unknown

"""


def run(shell: str, folder: Path, table: str | None) -> Capture:
    """The script's capture, with a dmidecode that prints `table`, or with none."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    for name in ("sed", "cat"):
        (folder / name).symlink_to(shutil.which(name) or name)
    if table is not None:
        (folder / "table").write_text(table)
        (folder / "dmidecode").write_text(f"#!/bin/sh\nexec cat {folder}/table\n")
        (folder / "dmidecode").chmod(0o755)
    done = subprocess.run(
        [str(shutil.which(shell)), "-c", SLOTS.text], env={"PATH": str(folder)}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return Capture("here", SLOTS.key, SLOTS.name, done.stdout)


@pytest.mark.parametrize("shell", SHELLS)
def test_numbers_of_modules_stay(shell: str, tmp_path: Path) -> None:
    """Serial number, part number, tag and maker are dropped on the target; the rest parses."""
    capture = run(shell, tmp_path, TABLE)
    assert "lanted" not in capture.text.lower()
    full, empty = memory_slots(capture)
    assert (full.size_mib, full.rated_mts, full.set_mts, full.socket, full.channel) == (65536, 5600, 4800, "1", "A")
    assert (empty.size_mib, empty.rated_mts, empty.set_mts, empty.channel) == (0, None, None, "A")


@pytest.mark.parametrize("shell", SHELLS)
def test_no_table(shell: str, tmp_path: Path) -> None:
    """A machine without the table, as dmidecode answers there, has no places."""
    assert memory_slots(run(shell, tmp_path, "")) == ()


@pytest.mark.parametrize("shell", SHELLS)
def test_not_installed(shell: str, tmp_path: Path) -> None:
    """Said as a problem with the package to install."""
    with pytest.raises(CollectError) as caught:
        memory_slots(run(shell, tmp_path, None))
    assert caught.value.problem.kind is ProblemKind.COMMAND_MISSING
