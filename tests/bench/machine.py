"""An invented GPU server, as the kernel's files and the commands that agents read would show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gapline.agents.host.cpu.reading import SOURCES as CPU
from gapline.agents.host.numa_balancing import AGENT as NUMA
from gapline.agents.host.nvidia.reading import SOURCES as NVIDIA
from gapline.agents.host.pci_express.reading import SOURCES as PCI
from gapline.orchestrator.discovery import identity, nodes
from gapline.orchestrator.model.source import Source

_SYS_CPU = "/sys/devices/system/cpu"
_GIB = 1 << 30
_IDLE, _FULL = "2.5 GT/s PCIe", "32.0 GT/s PCIe"
_PCI_EXPRESS_AT = 0x78  # where the capability lies in the configuration space that we make
_FLAGS = (
    "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat clflush mmx fxsr sse sse2 ht syscall nx mmxext "
    "pdpe1gb rdtscp lm constant_tsc rep_good nopl nonstop_tsc cpuid aperfmperf pni monitor ssse3 fma cx16 sse4_1 "
    "sse4_2 x2apic movbe popcnt aes xsave avx f16c rdrand svm cpb cat_l3 hw_pstate avx2 avx512f avx512_bf16"
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU below a root port, maybe with a switch between: `ports` from the root down."""

    bus_id: str
    minor: int
    ports: tuple[str, ...]

    @property
    def path(self) -> str:
        """Its directory in sysfs."""
        return f"/sys/devices/pci{self.ports[0][:7]}/" + "/".join((*self.ports, self.bus_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Everything in which one invented server differs from another."""

    name: str
    kernel: str
    boot_id: str
    uptime: str
    load: str
    cpu: str
    family: int
    model: int
    threads: int
    max_khz: int
    governor: str
    numa_balancing: int
    driver: str
    gpu_model: str
    gpus: tuple[Gpu, ...]
    majors: Mapping[str, int]
    others: tuple[tuple[int, str], ...]
    modules: tuple[tuple[str, int, int, str], ...]


def host(machine: Machine) -> dict[Source, str]:
    """The output of every source that agents and the survey read on the host itself, without its containers."""
    return {
        identity.BOOT_ID: f"{machine.boot_id}\n",
        identity.UPTIME: f"{machine.uptime}\n",
        identity.LOADAVG: f"{machine.load}\n",
        identity.HOSTNAME: f"{machine.name}\n",
        # No time of day: whenever it is replayed, it would be another day.
        identity.IDENTITY: "user=root\nuid=0\npve=1\nhas=lxc-info\nhas=nsenter\nhas=timeout\nhas=perl\nhas=python3\n",
        **_cpu(machine),
        NUMA.sources["switch"]: f"{machine.numa_balancing}\n",
        NUMA.sources["nodes"]: _node_cpus(machine.threads),
        **_driver(machine),
        **_bus(machine),
    }


def node_rows(machine: Machine, prefix: str = "") -> str:
    """The driver's nodes as `stat` shows them: ``path|type|major|minor|mode|uid|gid``."""
    uvm, caps = machine.majors["nvidia-uvm"], machine.majors["nvidia-caps"]
    rows = [(f"nvidia{gpu.minor}", 195, gpu.minor, "666") for gpu in sorted(machine.gpus, key=lambda gpu: gpu.minor)]
    rows += [("nvidiactl", 195, 255, "666"), ("nvidia-modeset", 195, 254, "666")]
    rows += [("nvidia-uvm", uvm, 0, "666"), ("nvidia-uvm-tools", uvm, 1, "666")]
    lines = [f"{prefix}/dev/{name}|{_node(major, minor, mode)}" for name, major, minor, mode in rows]
    if not prefix:
        lines += ["/dev/nvidia-caps|directory|0|0|755|0|0"]
        lines += [f"/dev/nvidia-caps/nvidia-cap{n}|{_node(caps, n, mode)}" for n, mode in ((1, "400"), (2, "444"))]
    return "".join(f"{line}\n" for line in lines)


def _node(major: int, minor: int, mode: str) -> str:
    return f"character special file|{major:x}|{minor:x}|{mode}|0|0"


def _cpu(machine: Machine) -> dict[Source, str]:
    values = {
        "affected_cpus": "",
        "cpuinfo_max_freq": str(machine.max_khz),
        "scaling_driver": "acpi-cpufreq",
        "scaling_governor": machine.governor,
        "scaling_max_freq": str(machine.max_khz),
    }
    order = sorted(range(machine.threads), key=str)  # as the shell expands policy*
    rows = [
        f"{_SYS_CPU}/cpufreq/policy{cpu}/{name}:{value or cpu}\n" for name, value in values.items() for cpu in order
    ]
    return {
        CPU["policies"]: "".join(rows),
        CPU["switches"]: f"{_SYS_CPU}/cpufreq/boost:1\n/sys/firmware/acpi/pm_profile:4\n",
        CPU["cppc"]: f"{_SYS_CPU}/cpu0/acpi_cppc|directory|0|0|755|0|0\n",
        CPU["cpuinfo"]: _cpuinfo(machine),
        CPU["parameters"]: "",
        CPU["kernel"]: f"{machine.kernel}\n",
    }


def _cpuinfo(machine: Machine) -> str:
    fields = {
        "processor": "0",
        "vendor_id": "AuthenticAMD",
        "cpu family": str(machine.family),
        "model": str(machine.model),
        "model name": machine.cpu,
        "stepping": "1",
        "cache size": "1024 KB",
        "siblings": str(machine.threads // 2),
        "cpu cores": str(machine.threads // 4),
        "flags": _FLAGS,
        "address sizes": "52 bits physical, 57 bits virtual",
        "power management": "ts ttp tm hwpstate cpb eff_freq_ro",
    }
    return "".join(f"{name}\t: {value}\n" for name, value in fields.items()) + "\n"


def _node_cpus(threads: int) -> str:
    quarter = threads // 4  # the first threads of all cores come before the second ones
    starts = ((0, 2 * quarter), (quarter, 3 * quarter))
    lists = [",".join(f"{start}-{start + quarter - 1}" for start in node) for node in starts]
    return "".join(f"/sys/devices/system/node/node{n}/cpulist:{cpus}\n" for n, cpus in enumerate(lists))


def _driver(machine: Machine) -> dict[Source, str]:
    version = (
        f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {machine.driver}  Release Build  (builder@example)\n"
        "GCC version:  gcc version 14.2.0 (Debian 14.2.0-19)\n"
    )
    return {
        NVIDIA["version"]: version,
        NVIDIA["modules"]: "".join(
            f"{name} {size} {uses} {users} Live 0x0000000000000000\n" for name, size, uses, users in machine.modules
        ),
        NVIDIA["devices"]: _devices(machine),
        NVIDIA["nodes"]: node_rows(machine),
        nodes.AFTER: node_rows(machine),
        NVIDIA["gpus"]: "".join(_information(gpu, machine.gpu_model) for gpu in machine.gpus),
        NVIDIA["installed"]: f"{machine.driver}\n",
    }


def _devices(machine: Machine) -> str:
    characters = [*machine.others, *((number, name) for name, number in machine.majors.items())]
    rows = [f"{number:3} {name}" for number, name in sorted(characters, key=lambda one: one[0])]
    blocks = ["259 blkext", "  7 loop", "  8 sd", "  9 md", "230 zvol", "252 device-mapper"]
    return "\n".join(("Character devices:", *rows, "", "Block devices:", *blocks, ""))


def _information(gpu: Gpu, model: str) -> str:
    fields = {
        "Model": f"\t\t {model}",
        "IRQ": f"\t\t {300 + gpu.minor}",
        "GPU UUID": "\t GPU-????????-????-????-????-????????????",
        "Video BIOS": "\t ??.??.??.??.??",
        "Bus Type": "\t PCIe",
        "DMA Size": "\t 52 bits",
        "DMA Mask": "\t 0xfffffffffffff",
        "Bus Location": f"\t {gpu.bus_id}",
        "Device Minor": f"\t {gpu.minor}",
        "GPU Excluded": "\t No",
    }
    path = f"/proc/driver/nvidia/gpus/{gpu.bus_id}/information"
    return "".join(f"{path}:{name}: {value}\n" for name, value in fields.items())


def _bus(machine: Machine) -> dict[Source, str]:
    gpus = sorted(machine.gpus, key=lambda gpu: gpu.bus_id)
    return {
        PCI["pci"]: "0000:03:00.0 0x1a03 0x2000 0x030000 physical ast\n"
        + "".join(f"{gpu.bus_id} 0x10de 0x2bb5 0x030200 physical nvidia\n" for gpu in gpus),
        PCI["links"]: "".join(_links(gpus)),
        PCI["config"]: "".join(_spaces(gpus)),
        PCI["states"]: "".join(f"0000{gpu.bus_id.upper()}, P8\n" for gpu in gpus),
    }


def _new(gpus: Sequence[Gpu]) -> Iterator[tuple[Gpu, tuple[str, ...]]]:
    """Each GPU with the devices of its path that no GPU before it has shown."""
    seen: set[str] = set()
    for gpu in gpus:
        new = tuple(device for device in (*gpu.ports, gpu.bus_id) if device not in seen)
        seen.update(new)
        yield gpu, new


def _links(gpus: Sequence[Gpu]) -> Iterator[str]:
    for index, (gpu, devices) in enumerate(_new(gpus)):
        yield f"gpu {gpu.bus_id} {gpu.path}\n"
        base = 0x2000_0000_0000 + index * 256 * _GIB
        windows = {0: (0xA000_0000 + index * (1 << 26), 1 << 26, 0x140204), 2: (base, 128 * _GIB, 0x14220C)}
        windows[4] = (base + 128 * _GIB, 1 << 25, 0x14220C)
        for place in range(6):
            start, size, flags = windows.get(place, (0, 1, 0))
            yield f"bar {gpu.bus_id} {place} {start:#018x} {start + size - 1:#018x} {flags:#018x}\n"
        for device in devices:
            idle = device in (gpu.bus_id, gpu.ports[-1])  # both ends of the link that an idle GPU slows down
            yield f"link {device} 16|16|{_IDLE if idle else _FULL}|{_FULL}\n"


def _spaces(gpus: Sequence[Gpu]) -> Iterator[str]:
    for gpu, devices in _new(gpus):
        for device in devices:
            is_gpu = device == gpu.bus_id
            slow = device in (gpu.bus_id, gpu.ports[-1])
            yield from _dump(device, _space(is_gpu=is_gpu, speed=1 if slow else 5))


def _space(*, is_gpu: bool, speed: int) -> bytes:
    """256 bytes: the header, and one PCI Express capability with MaxPayload 256 and MaxReadReq 512."""
    vendor, device, kind = (0x10DE, 0x2BB5, 0x030200) if is_gpu else (0x1022, 0x14AB, 0x060400)
    at, space = _PCI_EXPRESS_AT, bytearray(256)
    fields = {
        0x00: (vendor, 2),
        0x02: (device, 2),
        0x04: (0x0507, 2),
        0x06: (0x0010, 2),  # status: it has capabilities
        0x09: (kind, 3),
        0x0E: (0 if is_gpu else 1, 1),
        0x34: (at, 1),
        at: (0x10, 1),
        at + 0x02: (0x0002 if is_gpu else 0x0042, 2),
        at + 0x04: (0x10008FC0 | (1 if is_gpu else 2), 4),
        at + 0x08: (0x2936, 2),
        at + 0x0C: (0x00436905, 4),
        at + 0x10: (0x0040, 2),
        at + 0x12: (0x1100 | speed, 2),
        at + 0x2C: (0x0000003E, 4),
        at + 0x30: (0x0005, 2),
    }
    for place, (value, size) in fields.items():
        space[place : place + size] = value.to_bytes(size, "little")
    return bytes(space)


def _dump(device: str, space: bytes) -> Iterator[str]:
    """As `od -Ax -v -tx1` prints it, with the device in front."""
    for at in range(0, len(space), 16):
        yield f"{device} {at:06x} {space[at : at + 16].hex(' ')}\n"
    yield f"{device} {len(space):06x}\n"
