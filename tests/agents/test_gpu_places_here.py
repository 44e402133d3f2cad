"""The script that finds the GPUs' places, on this machine's own devices: all of them are taken for GPUs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gapline.agents.host.affinity.reading import SOURCES
from gapline.orchestrator.model.source import Script

DEVICES, SHELLS = Path("/sys/bus/pci/devices"), [("dash",), ("bash",), ("busybox", "ash")]


@pytest.mark.skipif(not DEVICES.is_dir() or not any(DEVICES.iterdir()), reason="no PCI bus here")
@pytest.mark.parametrize("shell", SHELLS, ids="-".join)
def test_places(shell: tuple[str, ...]) -> None:
    """Nodes, near CPUs and vectors are those that sysfs shows; each vector is one that exists."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    source = SOURCES["places"]
    assert isinstance(source, Script)
    text = source.text.replace("0x10de0x0300*|0x10de0x0302*", "*")
    assert text != source.text
    done = subprocess.run([*shell, "-c", text], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, end = done.stdout.splitlines()
    assert end == "end"
    shown = {line for line in lines if line.startswith("gpu ")}
    assert shown == {_expected(path) for path in DEVICES.iterdir() if not (path / "physfn").exists()}
    for _, bus_id, number, _ in (line.split(" ") for line in lines if line.startswith("vector ")):
        assert (DEVICES / bus_id / "msi_irqs" / number).exists()


def _expected(path: Path) -> str:
    node, cpus = ((path / name).read_text().strip() for name in ("numa_node", "local_cpulist"))
    return f"gpu {path.name} {node} {cpus}"
