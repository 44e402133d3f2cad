"""From captures to the errors on the GPUs' paths.

Linux counts errors in aer_dev_* of each device with the capability, whoever receives them. It receives them where it
made a service device for the root port: 002 is the one for errors of a root port (drivers/pci/pcie/portdrv.c), and it
is made only if the firmware granted them (_OSC) and no parameter forbids it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gapline.agents.host.aer.fact import ErrorCounters, PciErrors
from gapline.agents.host.pci_express.walk import WALK
from gapline.agents.host.pci_gpu import PCI_GPUS, nvidia_gpus, pci_gpus
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import NotApplicableError, ParseError
from gapline.orchestrator.model.source import File, Script, Source, Stat

_ON_DEVICES = """\
gpu() { echo "gpu|$1|$2"; }
device() {
  [ -r "$2/aer_dev_correctable" ] || return 0
  k=device
  [ -e "$2/aer_rootport_total_err_cor" ] && k=root
  echo "aer|$1|$k"
  for k in correctable nonfatal fatal; do
    [ -r "$2/aer_dev_$k" ] || continue
    while read -r l; do
      case $l in ''|*" 0") ;; *) echo "count|$1|$k|$l" ;; esac
    done <"$2/aer_dev_$k"
  done
}
"""
SOURCES: dict[str, Source] = {
    "pci": PCI_GPUS,
    "errors": Script(name="pci_errors", text=_ON_DEVICES + WALK + "echo end\n"),
    "services": Stat("/sys/bus/pci_express/devices/*:pcie*"),
    "uptime": File("/proc/uptime"),
}


def read(captures: Captures) -> PciErrors:
    """The fact.

    Raises:
        CollectError: the counters could not be read.
        ParseError: something has an unknown form.
        NotApplicableError: the host drives no NVIDIA GPU, or no port above one is to be seen.
    """
    driven = tuple(gpu.bus_id for gpu in nvidia_gpus(pci_gpus(captures.need("pci"))))
    lines = tuple(captures.need("errors").lines())
    if not lines or lines[-1].text != "end":
        raise ParseError((lines[-1] if lines else captures["errors"].first()).evidence, "the end of the errors")
    matches = [(line, _matched(line)) for line in lines[:-1]]
    paths = {match["gpu"]: match["path"].split("/")[1:] for _, match in matches if match["gpu"]}
    absent = next((gpu for gpu in driven if gpu not in paths), None)
    if absent:
        raise ParseError(lines[-1].evidence, f"a line for GPU {absent}")
    on_paths = {part for gpu in driven for part in paths[gpu] if _BUS_ID.fullmatch(part)}
    if on_paths == set(driven):
        raise NotApplicableError("no port above the GPUs is visible, as in a virtual machine: its host counts errors")
    handled = _handled(captures.have("services"))
    counters = tuple(one for one in _counters(matches, handled) if one.bus_id in on_paths)
    return PciErrors(gpus=driven, counters=counters, up_hours=_hours(captures.need("uptime").first()))


def _matched(line: Line) -> re.Match[str]:
    match = _LINE.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "a GPU, a device with error counters, or a counter")
    return match


def _counters(matches: Sequence[tuple[Line, re.Match[str]]], handled: frozenset[str]) -> Iterator[ErrorCounters]:
    for line, device in matches:
        bus_id = device["aer"]
        if not bus_id:
            continue
        counts = [(one, match) for one, match in matches if match["of"] == bus_id and not _is_total(match)]
        by_kind = {
            kind: {match["name"]: int(match["number"]) for _, match in counts if match["kind"] == kind}
            for kind in ("correctable", "nonfatal", "fatal")
        }
        root = device["place"] == "root"
        evidence = (line.evidence, *(one.evidence for one, _ in counts))
        seen = bus_id in handled if root else None
        yield ErrorCounters(bus_id=bus_id, root_port=root, handled=seen, evidence=evidence, **by_kind)


def _is_total(match: re.Match[str]) -> bool:
    return match["name"].startswith("TOTAL_ERR")


def _handled(capture: Capture | None) -> frozenset[str]:
    """The root ports whose errors Linux receives. The paths of other services (PME, hot-plug) say nothing."""
    found = (_SERVICE.match(line.text) for line in capture.lines()) if capture else ()
    return frozenset(match[1] for match in found if match)


def _hours(line: Line) -> float:
    match = re.match(r"([0-9]{1,12}(?:\.[0-9]{1,3})?) ", line.text, re.ASCII)
    if match is None:
        raise ParseError(line.evidence, "seconds since the boot")
    return float(match[1]) / 3600


_ID = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_BUS_ID = re.compile(_ID, re.ASCII)
_LINE = re.compile(
    rf"gpu\|(?P<gpu>{_ID})\|(?P<path>/sys/devices/[^|\s]+)|aer\|(?P<aer>{_ID})\|(?P<place>root|device)"
    rf"|count\|(?P<of>{_ID})\|(?P<kind>correctable|nonfatal|fatal)\|(?P<name>[A-Za-z_/ ]{{1,60}})"
    r" (?P<number>[0-9]{1,18})",
    re.ASCII,
)
_SERVICE = re.compile(rf"/sys/bus/pci_express/devices/({_ID}):pcie002\|", re.ASCII)
