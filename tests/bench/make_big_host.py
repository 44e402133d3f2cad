"""Makes `big_host/`: a recorded host with 128 threads, 8 GPUs behind switches and two containers, all invented.

The scale benchmark replays it a thousand times over. Run again when agents read something new:
``python -m tests.bench.make_big_host``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from gapline.orchestrator.collect.item import Binding
from gapline.orchestrator.discovery.containers import CONTAINERS
from tests.bench.gpu_container import GpuContainer, container, listing, users
from tests.bench.machine import Gpu, Machine, host
from tests.bench.recording import write

HERE = Path(__file__).parent / "big_host"

_DYNAMIC = ("gpiochip", "tpm", "ndctl", "dimmctl", "dax", "dma_heap", "rtc", "bsg", "watchdog", "ptp", "pps", "lirc")
_FIXED = ((1, "mem"), (4, "tty"), (5, "/dev/tty"), (5, "/dev/console"), (5, "/dev/ptmx"), (7, "vcs"), (10, "misc"))
_MORE = ((13, "input"), (21, "sg"), (29, "fb"), (89, "i2c"), (108, "ppp"), (116, "alsa"), (128, "ptm"), (136, "pts"))


def _gpus() -> tuple[Gpu, ...]:
    """Two below each of four switches. The driver counts from the second socket's first switch."""
    found = []
    for place, root in enumerate((0xC0, 0xE0, 0x00, 0x40)):
        bus = [f"0000:{root + step:02x}" for step in range(6)]
        for side in range(2):
            ports = (f"{bus[0]}:01.1", f"{bus[1]}:00.0", f"{bus[2]}:{side:02x}.0")
            found.append(Gpu(f"{bus[3 + side]}:00.0", 2 * place + side, ports))
    return tuple(found)


def _modules() -> tuple[tuple[str, int, int, str], ...]:
    nvidia = (
        ("nvidia_uvm", 2326528, 16, "-"),
        ("nvidia_drm", 139264, 0, "-"),
        ("nvidia_modeset", 1830912, 1, "nvidia_drm,"),
        ("nvidia", 14397440, 341, "nvidia_uvm,nvidia_drm,nvidia_modeset,"),
    )
    filler = tuple((f"invented_{number:03}", 16384 + 4096 * (number % 23), number % 5, "-") for number in range(160))
    return (*nvidia, *filler)


BIG = Machine(
    name="big",
    kernel="6.14.11-4-pve",
    boot_id="5b0d9a1e-6a57-4c3b-8f0e-2f6a1c9d7e40",
    uptime="934512.77 118823711.40",
    load="9.12 8.87 8.41 11/2874 1220482",
    cpu="AMD EPYC 9354 32-Core Processor",
    family=25,
    model=17,
    threads=128,
    max_khz=3250000,
    governor="performance",
    numa_balancing=0,
    driver="580.95.05",
    gpu_model="NVIDIA RTX PRO 6000 Blackwell Server Edition",
    gpus=_gpus(),
    majors={
        "nvidia": 195,
        "nvidiactl": 195,
        "nvidia-uvm": 508,
        "nvidia-nvlink": 509,
        "nvidia-caps": 510,
        "nvidia-caps-imex-channels": 511,
    },
    others=(*_FIXED, *_MORE, *((254 - place, name) for place, name in enumerate(_DYNAMIC))),
    modules=_modules(),
)

_CONFIG = """\
arch: amd64
cores: 96
{entries}
features: nesting=1
hostname: serve
memory: 786432
onboot: 1
ostype: debian
rootfs: tank:subvol-201-disk-0,size=2000G
swap: 0
lxc.prlimit.memlock: unlimited
"""


def _serving() -> GpuContainer:
    nodes = [*(f"nvidia{number}" for number in range(8)), "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"]
    numbers = {"nvidiactl": (195, 255), "nvidia-uvm": (508, 0), "nvidia-uvm-tools": (508, 1)}
    numbers |= {f"nvidia{number}": (195, number) for number in range(8)}
    workers = tuple((61000 + place, 900 + place, f"VLLM::Worker_TP{place}"[:15]) for place in range(8))
    return GpuContainer(
        binding=Binding("201", "48213", "/etc/pve/lxc/201.conf", "/lxc/201"),
        config=_CONFIG.format(entries="\n".join(f"dev{n}: /dev/{name},mode=0666" for n, name in enumerate(nodes))),
        uid_map="0 0 4294967295",
        processes=((48213, 1, "systemd"), *workers),
        started="".join("c:{}:{}:/dev/{}\n".format(*numbers[name], name) for name in nodes),
    )


def main() -> None:
    """Make it anew."""
    shutil.rmtree(HERE, ignore_errors=True)
    serving = _serving()
    name_server = "ct|205|RUNNING|3911|/etc/pve/lxc/205.conf\ncg|205|0::/lxc/205/ns/init.scope\n"
    listed = listing(serving) + name_server + users(serving, "vllm.service") + "end\n"
    write(
        HERE,
        {
            "big": ({**host(BIG), CONTAINERS: listed}, None),
            "big/201": (container(BIG, serving), serving.binding),
        },
    )


if __name__ == "__main__":
    main()
