"""From captures to the PCI Express paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gapline.agents.host.pci_express.config_space import ConfigSpace, config_spaces
from gapline.agents.host.pci_express.extended import EXTENDED, RESIZABLE_BAR, Extended, extended
from gapline.agents.host.pci_express.fact import GpuPath, PciExpressDevice, PciExpressPaths, PowerPolicy
from gapline.agents.host.pci_express.shared import shared_links
from gapline.agents.host.pci_express.walk import WALK
from gapline.agents.host.pci_gpu import PCI_GPUS, address, nvidia_gpus, pci_gpus
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import CollectError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Command, File, Script, Source

_LINKS = """\
value() { v=; [ -r "$1" ] && read -r v <"$1"; }
gpu() {
  echo "gpu $1 $2"
  n=0
  while [ "$n" -lt 6 ] && read -r start end flags; do
    echo "bar $1 $n $start $end $flags"
    n=$((n + 1))
  done <"$2/resource"
}
device() {
  value "$2/current_link_width"; l=$v
  value "$2/max_link_width"; l="$l|$v"
  value "$2/current_link_speed"; l="$l|$v"
  value "$2/max_link_speed"; echo "link $1 $l|$v"
}
"""
# The first 256 bytes hold every classic capability. `od` reads them as they are; a shell would drop the zeros.
_CONFIG = """\
gpu() { :; }
device() { od -Ax -v -tx1 -N256 "$2/config" | sed "s/^/$1 /"; }
"""

_POLICY = "/sys/module/pcie_aspm/parameters/policy"
SOURCES: dict[str, Source] = {
    "pci": PCI_GPUS,
    "links": Script(name="pci_links", text=_LINKS + WALK),
    "config": Script(name="pci_config", text=_CONFIG + WALK, root=True),
    "extended": EXTENDED,
    "power_policy": File(_POLICY),
    "states": Command(
        ("nvidia-smi", "--query-gpu=pci.bus_id,pstate,utilization.gpu", "--format=csv,noheader,nounits"),
        timeout=20,
        wakes_gpu=True,
    ),
}


@dataclass(slots=True)
class _Links:
    """What `pci_links` printed, sorted."""

    paths: dict[str, Line] = field(default_factory=dict)
    bars: dict[str, list[Line]] = field(default_factory=dict)
    links: dict[str, Line] = field(default_factory=dict)


def read(captures: Captures) -> PciExpressPaths:
    """The fact. Without root it holds the links, and says what it could not see.

    Raises:
        CollectError: the links could not be read.
        ParseError: something has an unknown form.
        NotApplicableError: the host drives no NVIDIA GPU.
    """
    driven = nvidia_gpus(pci_gpus(captures.need("pci")))
    links = _sorted(captures.need("links"))
    states = _states(captures["states"])
    absent = next((gpu for gpu in driven if gpu.bus_id not in links.paths), None)
    if absent:
        raise ParseError(captures["links"].first().evidence, f"a line for GPU {absent.bus_id}")
    windows = _windows(captures["extended"])
    gpus = tuple(_gpu(gpu.bus_id, links, states, windows.get(gpu.bus_id)) for gpu in driven)
    config = captures["config"]
    spaces = {} if config.problem else config_spaces(config)
    wanted = dict.fromkeys(bus_id for gpu in gpus for bus_id in gpu.path)
    unlinked = next((bus_id for bus_id in wanted if bus_id not in links.links), None)
    if unlinked:
        raise ParseError(captures["links"].first().evidence, f"a link line for {unlinked}")
    devices = tuple(_device(links.links[bus_id], spaces.get(bus_id)) for bus_id in wanted)
    unseen = config.problem or _short(config, [spaces.get(bus_id) for bus_id in wanted])
    policy = _policy(captures["power_policy"])
    shared = tuple(shared_links(gpus, {device.bus_id: device for device in devices}))
    unseen_parts = (unseen,) if unseen else ()
    return PciExpressPaths(gpus=gpus, devices=devices, shared=shared, power_policy=policy, unseen=unseen_parts)


def gpu_paths(capture: Capture) -> Mapping[str, tuple[str, ...]]:
    """From `pci_links` alone: for each GPU the bus ids from its root port down to itself.

    Raises:
        ParseError: a line has another form, or a path does not end at its GPU.
    """
    return {bus_id: _path(bus_id, line) for bus_id, line in _sorted(capture).paths.items()}


def _path(bus_id: str, line: Line) -> tuple[str, ...]:
    path = tuple(part for part in line.text.split("/") if _BUS_ID.fullmatch(part))
    if path[-1:] != (bus_id,):
        raise ParseError(line.evidence, "a path in sysfs that ends at the GPU")
    return path


def _sorted(capture: Capture) -> _Links:
    found = _Links()
    for line in capture.lines():
        if gpu := _GPU.fullmatch(line.text):
            found.paths[gpu[1]] = line
        elif bar := _BAR.fullmatch(line.text):
            found.bars.setdefault(bar[1], []).append(line)
        elif link := _LINK.fullmatch(line.text):
            found.links[link[1]] = line
        else:
            raise ParseError(line.evidence, "a gpu, bar or link line")
    return found


def _policy(capture: Capture) -> PowerPolicy | None:
    """The word in brackets. A kernel without ASPM has no such file."""
    match = re.search(r"\[([a-z]{1,20})\]", capture.first().text, re.ASCII)
    return PowerPolicy(value=match[1], evidence=capture.first().evidence) if match else None


def _windows(capture: Capture) -> Mapping[str, Extended]:
    """Only a remark of a finding rests on it, so that it is not seen without root is said nowhere."""
    try:
        return {} if capture.problem else extended(capture)
    except CollectError:
        return {}


def _sizes_mib(space: Extended | None, place: int) -> tuple[int, ...] | None:
    """The sizes that the capability offers for the window at a place: up to three entries of 8 bytes after its head."""
    data, _ = space.capabilities.get(RESIZABLE_BAR, (b"", None)) if space else (b"", None)
    for at in range(4, len(data) - 7, 8):
        offered, control = int.from_bytes(data[at : at + 4], "little"), data[at + 4]
        if control & 7 == place:
            return tuple(1 << power for power in range(28) if offered & 1 << power + 4)
    return None


def _gpu(
    bus_id: str, links: _Links, states: Mapping[tuple[int, ...], tuple[str, int]], space: Extended | None
) -> GpuPath:
    line = links.paths[bus_id]
    path = _path(bus_id, line)
    place, size, evidence = _bar1(links.bars.get(bus_id, []), line)
    state, busy = states.get(address(bus_id), (None, None))
    return GpuPath(
        bus_id=bus_id,
        path=path,
        state=state,
        busy_percent=busy,
        bar1_mib=size >> 20,
        bar1_sizes_mib=_sizes_mib(space, place),
        bar1=evidence,
    )


def _bar1(bars: list[Line], gpu: Line) -> tuple[int, int, Evidence]:
    """Place and size in bytes of the second memory window. A 64-bit window takes two places, so it can stand third."""
    rows = [match for line in bars if (match := _BAR.fullmatch(line.text))]
    if len(rows) <= 2:  # noqa: PLR2004 - the places that a second window can have
        raise ParseError(gpu.evidence, "six bar lines after it")
    place = 2 if int(rows[0][5], 16) & _IS_64_BIT else 1
    start, end, flags = (int(rows[place][number], 16) for number in (3, 4, 5))
    assigned = flags and not flags & _UNSET and end > start
    return place, (end - start + 1 if assigned else 0), bars[place].evidence


def _device(line: Line, space: ConfigSpace | None) -> PciExpressDevice:
    match = _LINK.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "a link line")
    express = space.express() if space else None
    return PciExpressDevice(
        bus_id=match[1],
        width=_lanes(match[2]),
        max_width=_lanes(match[3]),
        speed_gts=_speed(match[4]),
        max_speed_gts=_speed(match[5]),
        payload_bytes=express.payload_bytes if express else None,
        payload_supported_bytes=express.payload_supported_bytes if express else None,
        read_request_bytes=express.read_request_bytes if express else None,
        target_speed_gts=express.target_speed_gts if express else None,
        power_states=express.power_states if express else None,
        gone=space.is_gone if space else False,
        link=line.evidence,
        link_control=express.link_control if express else None,
        control=express.control if express else (space.rows[0].evidence if space and space.is_gone else None),
    )


def _lanes(text: str) -> int | None:
    """0 stands for "no link", 63 and 255 for a device that does not answer."""
    return int(text) if text in {"1", "2", "4", "8", "12", "16", "32"} else None


def _speed(text: str) -> float | None:
    """``32.0 GT/s PCIe``; older kernels ``8 GT/s``; "Unknown" when nobody knows."""
    match = _SPEED.match(text)
    return float(match[1]) if match else None


def _short(config: Capture, spaces: list[ConfigSpace | None]) -> Problem | None:
    if all(space and not space.is_short for space in spaces):
        return None
    detail = f"{config.shown}: only the first 64 bytes of some configuration spaces were given, or none"
    return Problem(kind=ProblemKind.DENIED, detail=detail, hint="Read as root; kernel lockdown withholds it even then.")


def _states(capture: Capture) -> Mapping[tuple[int, ...], tuple[str, int]]:
    """State and utilisation by address. Lines that tell neither ("No devices were found", "[N/A]") are no fault."""
    matches = (_STATE.fullmatch(line.text) for line in capture.lines())
    return {address(match[1]): (match[2], int(match[3])) for match in matches if match}


_IS_64_BIT = 0x0010_0000  # IORESOURCE_MEM_64, Linux include/linux/ioport.h
_UNSET = 0x2000_0000  # IORESOURCE_UNSET: the kernel found no room for it
_ID = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_BUS_ID = re.compile(_ID, re.ASCII)
_GPU = re.compile(rf"gpu ({_ID}) /sys/devices/\S+", re.ASCII)
_BAR = re.compile(rf"bar ({_ID}) ([0-5]) 0x([0-9a-f]{{1,16}}) 0x([0-9a-f]{{1,16}}) 0x([0-9a-f]{{1,16}})", re.ASCII)
_LINK = re.compile(rf"link ({_ID}) ([0-9]{{0,3}})\|([0-9]{{0,3}})\|([^|]{{0,40}})\|([^|]{{0,40}})", re.ASCII)
_SPEED = re.compile(r"([0-9]{1,3}(?:\.[0-9])?) GT/s", re.ASCII)
_STATE = re.compile(r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]), (P[0-9]{1,2}), ([0-9]{1,3})", re.ASCII)
