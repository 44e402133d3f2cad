"""What stands in for the NVIDIA driver in the LXC lab, and what is real there.

Without an NVIDIA driver, and without CUSE to register a character device of a chosen name, some answers of the kernel
are stand-ins, bound over the real ones inside the lab only: the *names* in ``/proc/devices``, a GPU on the PCI bus,
two lines of ``/proc/modules`` and the tree ``/proc/driver/nvidia``. Everything that decides an access is real: nodes,
device policy, id maps, seccomp, capabilities, rlimits. Behind "nvidia-uvm" stands a real driver with a real dynamic
major, ``macvtap``:

* minor 1, nvidia-uvm-tools, is a device that opens: success where it is allowed, EPERM where it is denied;
* minor 0, nvidia-uvm, is never given out by macvtap: ENODEV from the driver where allowed, EPERM where denied;
* major 195 belongs to nobody here: ENXIO where allowed, EPERM where denied.

access(2) tells allowed from denied for all of them. The virtual machine lab has drivers that open for every node.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

NVIDIA_MAJOR = 195
CTL_MINOR = 255
DRIVER = "macvtap"
DRIVER_VERSION = "570.124.06"
BUS_ID = "0000:41:00.0"


@dataclass(frozen=True, slots=True)
class Node:
    """A character device node on the lab's host."""

    name: str
    major: int
    minor: int


STALE_MAJOR = 510  # where the configuration of the lab believes nvidia-uvm to be; nvidia-caps has it now


def nodes(uvm_major: int) -> tuple[Node, ...]:
    """What nvidia-modprobe would make."""
    return (
        Node("nvidia0", NVIDIA_MAJOR, 0),
        Node("nvidiactl", NVIDIA_MAJOR, CTL_MINOR),
        Node("nvidia-uvm", uvm_major, 0),
        Node("nvidia-uvm-tools", uvm_major, 1),
    )


def driver_major(real: str) -> int:
    """The dynamic major that the kernel gave the driver that plays nvidia-uvm."""
    found = re.search(rf"^ *(\d+) {DRIVER}$", real, flags=re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{DRIVER} is not registered")
    return int(found.group(1))


def proc_devices(real: str) -> str:
    """The kernel's own list with our names put in and the drivers they hide left out."""
    ours = {
        NVIDIA_MAJOR: ("nvidia", "nvidiactl"),
        driver_major(real): ("nvidia-uvm",),
        STALE_MAJOR: ("nvidia-caps",),
    }
    characters, _, blocks = real.partition("\nBlock devices:\n")
    kept = {
        int(major): (name,)
        for major, name in re.findall(r"^ *(\d+) (\S.*)$", characters, flags=re.MULTILINE)
        if int(major) not in ours
    }
    lines = [f"{major:3d} {name}" for major, names in sorted((kept | ours).items()) for name in names]
    return "Character devices:\n" + "\n".join(lines) + "\n\nBlock devices:\n" + blocks


def write_driver(folder: Path) -> None:
    """What `show-driver.sh` shows: a GPU on the bus, its modules and the open kernel module's `/proc/driver/nvidia`."""
    for relative, text in _FILES.items():
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (folder / "pci" / BUS_ID / "driver").symlink_to("../../../bus/pci/drivers/nvidia")


_FILES = {
    "proc-driver/nvidia/version": (
        f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {DRIVER_VERSION}  Release Build  (lab@lab)\n"
        "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)\n"
    ),
    "proc-driver/nvidia/params": (
        'ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nEnableMSI: 1\nRegistryDwords: ""\n'
    ),
    f"proc-driver/nvidia/gpus/{BUS_ID}/information": (
        "Model: \t\t NVIDIA Lab Stand-in\nIRQ:   \t\t 120\nGPU UUID: \t GPU-00000000-0000-0000-0000-00000000000a\n"
        "Video BIOS: \t 00.00.00.00.00\nBus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\n"
        f"Bus Location: \t {BUS_ID}\nDevice Minor: \t 0\nGPU Firmware: \t {DRIVER_VERSION}\nGPU Excluded:\t No\n"
    ),
    "modules": (
        "nvidia_uvm 4153344 2 - Live 0x0000000000000000 (OE)\n"
        "nvidia 11513856 19 nvidia_uvm, Live 0x0000000000000000 (OE)\n"
    ),
    f"pci/{BUS_ID}/vendor": "0x10de\n",
    f"pci/{BUS_ID}/device": "0x2bb1\n",
    f"pci/{BUS_ID}/class": "0x030200\n",
    f"pci/{BUS_ID}/numa_node": "0\n",
}
