"""The walk over extended capabilities, on files that stand for sysfs: no test machine has bridges and GPUs."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from gapline.agents.host.pci_express.extended import ACS, EXTENDED, RESIZABLE_BAR, Extended, extended
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import CollectError

PORT, GPU = "0000:40:03.1", "0000:42:00.0"


def space(*capabilities: tuple[int, int, int, bytes], size: int = 4096) -> bytes:
    """A configuration space with capabilities of (offset, id, offset of the next, body)."""
    data = bytearray(size)
    for at, id_, following, body in capabilities:
        data[at : at + 4 + len(body)] = struct.pack("<I", id_ | 1 << 16 | following << 20) + body
    return bytes(data)


def run(shell: tuple[str, ...], root: Path, port: bytes, gpu: bytes) -> dict[str, Extended]:
    """What the script makes of a port with a GPU below it."""
    below = root / "devices/pci0000:40" / PORT / GPU
    below.mkdir(parents=True)
    for path, vendor, class_, config in (
        (below.parent, "0x1022", "0x060400", port),
        (below, "0x10de", "0x030200", gpu),
    ):
        for name, text in (("vendor", vendor), ("device", "0x1483"), ("class", class_)):
            (path / name).write_text(f"{text}\n")
        (path / "config").write_bytes(config)
    (root / "bus").mkdir()
    for path in (below.parent, below):
        (root / "bus" / path.name).symlink_to(path)
    text = EXTENDED.text.replace("/sys/bus/pci/devices", str(root / "bus"))
    done = subprocess.run([*shell, "-c", text], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return dict(extended(Capture("here", EXTENDED.key, EXTENDED.name, done.stdout)))


def test_finds_capabilities_by_their_chain(shell: tuple[str, ...], tmp_path: Path) -> None:
    """The third in a chain, one at the very end of the space, and none of another device's."""
    port = space((0x100, 0x01, 0x2A0, b"\xff" * 16), (0x2A0, ACS, 0, struct.pack("<HH", 0x5F, 0x1D)))
    bars = struct.pack("<II", 0x3FFC00, 0x1121)
    gpu = space((0x100, 0x0B, 0xFF0, b""), (0xFF0, RESIZABLE_BAR, 0, bars))
    found = run(shell, tmp_path, port, gpu)
    assert {bus_id: list(one.capabilities) for bus_id, one in found.items()} == {PORT: [ACS], GPU: [RESIZABLE_BAR]}
    assert found[PORT].capabilities[ACS][0][4:8] == struct.pack("<HH", 0x5F, 0x1D)
    assert found[GPU].capabilities[RESIZABLE_BAR][0][4:12] == bars


def test_devices_without_extended_space(shell: tuple[str, ...], tmp_path: Path) -> None:
    """A classic device has 256 bytes, and the one after it is still found."""
    gpu = space((0x100, RESIZABLE_BAR, 0, b"\x10\x00\x00\x00\x21\x00\x00\x00"))
    found = run(shell, tmp_path, space(size=256), gpu)
    assert {bus_id: list(one.capabilities) for bus_id, one in found.items()} == {PORT: [], GPU: [RESIZABLE_BAR]}


def test_chain_in_a_circle(shell: tuple[str, ...], tmp_path: Path) -> None:
    """A broken device cannot hold the walk up, nor one that answers with ones only."""
    circle = space((0x100, 0x01, 0x200, b""), (0x200, 0x02, 0x100, b""))
    found = run(shell, tmp_path, circle, b"\xff" * 4096)
    assert [one.capabilities for one in found.values()] == [{}, {}]


def test_withheld_bytes_are_a_problem(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Where less comes than the file is long, nothing is said about capabilities."""
    text = EXTENDED.text.replace("cat $files", "head -q -c 64 $files")
    assert text != EXTENDED.text
    with pytest.raises(CollectError, match="64 bytes"):
        _withheld(shell, tmp_path, text)


def _withheld(shell: tuple[str, ...], root: Path, text: str) -> None:
    run(shell, root / "whole", space(), space())
    at = text.replace("/sys/bus/pci/devices", str(root / "whole/bus"))
    done = subprocess.run([*shell, "-c", at], capture_output=True, check=True)
    extended(Capture("here", EXTENDED.key, EXTENDED.name, done.stdout))
