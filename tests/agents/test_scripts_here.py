"""The scripts of host agents on this machine: real sysfs, in every shell that a target may have.

No test machine has eight GPUs, so the scripts that walk from GPUs to their root ports are told to take any PCI device.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gapline.agents.host.cpu.reading import SOURCES as CPU_SOURCES
from gapline.agents.host.pci_express.config_space import config_spaces
from gapline.agents.host.pci_express.reading import SOURCES
from gapline.agents.host.pci_gpu import PCI_GPUS, pci_gpus
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.source import Script, Source

DEVICES = Path("/sys/bus/pci/devices")
ONLY_NVIDIA = "0x10de0x0300*|0x10de0x0302*"

needs_pci = pytest.mark.skipif(not DEVICES.is_dir() or not any(DEVICES.iterdir()), reason="no PCI bus here")


def run(shell: tuple[str, ...], source: Source, text: str | None = None) -> Capture:
    """The script's capture; it must succeed and stay silent on standard error."""
    assert isinstance(source, Script)
    done = subprocess.run([*shell, "-c", text or source.text], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return Capture("here", source.key, source.name, done.stdout)


def test_display_controllers(shell: tuple[str, ...]) -> None:
    """Whatever this machine has, each line parses, and no device is listed that is not there."""
    found = pci_gpus(run(shell, PCI_GPUS))
    assert all((DEVICES / gpu.bus_id).is_dir() for gpu in found)


def test_command_line(shell: tuple[str, ...]) -> None:
    """Only parameters that choose a frequency driver leave the machine."""
    lines = run(shell, CPU_SOURCES["parameters"]).text.split()
    assert all(line.startswith(("amd_pstate", "intel_pstate", "cpufreq.")) for line in lines)


@needs_pci
def test_configuration_spaces(shell: tuple[str, ...]) -> None:
    """The bytes are the device's: vendor and device id are those that sysfs shows in text."""
    spaces = config_spaces(run(shell, SOURCES["config"], everything("config")))
    assert set(spaces) >= {path.name for path in DEVICES.iterdir() if not (path / "physfn").exists()}
    for bus_id, space in spaces.items():
        shown = [int((DEVICES / bus_id / name).read_text(), 16) for name in ("vendor", "device")]
        assert [int.from_bytes(space.data[at : at + 2], "little") for at in (0, 2)] == shown
        assert len(space.data) in {64, 256}


@needs_pci
def test_links(shell: tuple[str, ...]) -> None:
    """One path for each device, six bars for each, and one link line for everything on a path."""
    lines = run(shell, SOURCES["links"], everything("links")).text.splitlines()
    paths = [line.split() for line in lines if line.startswith("gpu ")]
    assert all(Path(path).resolve() == (DEVICES / bus_id).resolve() for _, bus_id, path in paths)
    assert sum(line.startswith("bar ") for line in lines) == 6 * len(paths)
    on_paths = {part for _, _, path in paths for part in path.split("/") if (DEVICES / part).exists() and part}
    assert {line.split()[1] for line in lines if line.startswith("link ")} == on_paths


def everything(name: str) -> str:
    """The script's text with every device taken for a GPU."""
    source = SOURCES[name]
    assert isinstance(source, Script)
    assert ONLY_NVIDIA in source.text
    return source.text.replace(ONLY_NVIDIA, "*")
