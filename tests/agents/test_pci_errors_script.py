"""What the script about PCI Express errors makes of a port and a GPU that are laid out as files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gapline.agents.host.aer.reading import SOURCES
from gapline.orchestrator.model.source import Script

PORT, GPU, OLD = "0000:40:03.1", "0000:42:00.0", "0000:43:00.0"
SHELLS = [pytest.param(("dash",), id="dash"), pytest.param(("bash",), id="bash")]
SHELLS += [pytest.param(("busybox", "ash"), id="busybox")]
CLEAN = "RxErr 0\nBadTLP 0\nTOTAL_ERR_COR 0\n"
FILES = {
    PORT: {
        "class": "0x060400\n",
        "vendor": "0x1022\n",
        "aer_dev_correctable": "RxErr 0\nBadTLP 10\nRELAY_NUM Rollover 1\nTOTAL_ERR_COR 11\n",
        "aer_dev_nonfatal": "UnsupReq 0\nTOTAL_ERR_NONFATAL 0\n",
        "aer_dev_fatal": "DLP 2\nTOTAL_ERR_FATAL 2\n",
        "aer_rootport_total_err_cor": "11\n",
    },
    f"{PORT}/{GPU}": {"class": "0x030200\n", "vendor": "0x10de\n", "aer_dev_correctable": CLEAN},
    f"{PORT}/{OLD}": {"class": "0x030000\n", "vendor": "0x10de\n"},
}


@pytest.mark.parametrize("shell", SHELLS)
def test_counts_without_zeros(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Each device with counters once, the root port told apart, and only what was counted."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    (tmp_path / "bus").mkdir()
    for path, files in FILES.items():
        device = tmp_path / "devices/pci0000:40" / path
        device.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (device / name).write_text(content)
        (tmp_path / "bus" / device.name).symlink_to(device)
    source = SOURCES["errors"]
    assert isinstance(source, Script)
    text = source.text.replace("/sys/bus/pci/devices", str(tmp_path / "bus"))
    done = subprocess.run([*shell, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    base = tmp_path / "devices/pci0000:40" / PORT
    assert done.stdout.splitlines() == [
        f"gpu|{GPU}|{base}/{GPU}",
        f"aer|{PORT}|root",
        f"count|{PORT}|correctable|BadTLP 10",
        f"count|{PORT}|correctable|RELAY_NUM Rollover 1",
        f"count|{PORT}|correctable|TOTAL_ERR_COR 11",
        f"count|{PORT}|fatal|DLP 2",
        f"count|{PORT}|fatal|TOTAL_ERR_FATAL 2",
        f"aer|{GPU}|device",
        f"gpu|{OLD}|{base}/{OLD}",
        "end",
    ]
