"""From captures to the kernel log's fact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gapline.agents.host.log.fact import KernelLog, Kind, LogEvent
from gapline.agents.host.log.message import BUS, Found, events
from gapline.agents.host.log.source import KERNEL_LOG
from gapline.agents.host.nvidia.reading import SOURCES as DRIVER
from gapline.agents.host.pci_express.reading import SOURCES as PCI_EXPRESS
from gapline.agents.host.pci_gpu import PCI_GPUS, nvidia_gpus, pci_gpus
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.source import File, Source

SOURCES: dict[str, Source] = {
    "pci": PCI_GPUS,
    "links": PCI_EXPRESS["links"],
    "gpus": DRIVER["gpus"],
    "uptime": File("/proc/uptime"),
    "log": KERNEL_LOG,
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of the log. `line` has the text as the kernel wrote it."""

    line: Line
    seconds: float | None
    text: str
    times: int


def read(captures: Captures) -> KernelLog:
    """The fact.

    Raises:
        CollectError: the log could not be read.
        ParseError: it, or the list of GPUs, has an unknown form.
        NotApplicableError: the host drives no NVIDIA GPU, and the log knows of none that is gone.
    """
    log = captures.need("log")
    ending, entries = _entries(log)
    known = pci_gpus(captures.need("pci"))
    present = {gpu.bus_id for gpu in known}
    gone = {
        match[1]: entry.line for entry in entries if (match := _AT_BOOT.search(entry.text)) and match[1] not in present
    }
    gpus = {gpu.bus_id for gpu in known if gpu.is_nvidia} if gone else {gpu.bus_id for gpu in nvidia_gpus(known)}
    places = _paths(captures["links"]) | gpus | set(gone)
    return KernelLog(
        origin=ending[1],
        whole=ending[2] == "whole",
        begins_seconds=float(ending[4]) if ending[4] else None,
        uptime_seconds=_uptime(captures["uptime"]),
        lines=int(ending[3]),
        firmware_keeps_errors=len({match[1] for entry in entries if (match := _FIRMWARE.search(entry.text))}),
        events=tuple(_events(entries, places)),
        at_boot=tuple(line.evidence for line in gone.values()),
        missing=tuple(gone),
        initialised=tuple(_initialised(captures["gpus"])),
    )


def _entries(log: Capture) -> tuple[re.Match[str], list[_Entry]]:
    """The last line says how much there was; the order is that of time, as the counted lines come last."""
    lines = list(log.lines())
    last = lines[-1] if lines else log.first()
    ending = _END.fullmatch(last.text)
    if ending is None:
        raise ParseError(last.evidence, "'end|dmesg or journal|whole or part|lines|first time stamp' as the last line")
    found = list(_timed(log, lines[:-1]))
    return ending, sorted(found, key=lambda entry: entry.seconds or 0.0)


def _timed(log: Capture, lines: Iterable[Line]) -> Iterator[_Entry]:
    """A line without a time stamp continues the one before."""
    seconds: float | None = None
    for line in lines:
        match = _LINE.fullmatch(line.text)
        if match is None:
            raise ParseError(line.evidence, "'line|' or 'more|NUMBER|' and a message")
        stamp = _STAMP.match(match[2])
        own = float(stamp[1]) if stamp else seconds
        seconds = own if match[1] is None else seconds
        text = match[2][stamp.end() :] if stamp else match[2]
        whole = Line(line.target, log.shown, line.number, match[2])
        yield _Entry(whole, own, text.strip(), int(match[1] or 1))


def _events(entries: list[_Entry], places: set[str]) -> Iterator[LogEvent]:
    """What the driver said before it was last loaded is over; so is a window that found its place later on."""
    loaded = max((at for at, entry in enumerate(entries) if "NVRM: loading NVIDIA" in entry.text), default=-1)
    placed = {
        (match[1], f"BAR {match[2]}"): at for at, entry in enumerate(entries) if (match := _PLACED.search(entry.text))
    }
    killed = _killed(entries)
    about = ""
    for at, entry in enumerate(entries):
        if named := _ABOUT.search(entry.text):
            about = named[1]
        for kind, subject, code, detail in events(entry.text):
            if (at < loaded and kind in _OF_DRIVER) or placed.get((subject, detail), -1) > at:
                continue
            if kind is Kind.OUT_OF_MEMORY:
                yield from _out_of_memory(entry, (kind, subject, code, detail), killed)
            elif (kind not in _OF_SLOT or subject in places) and not (kind is Kind.NARROW and code == _ALL_LANES):
                yield _event(entry, (kind, subject or about, code, detail))


def _event(entry: _Entry, found: Found) -> LogEvent:
    kind, subject, code, detail = found
    return LogEvent(
        kind=kind,
        seconds=entry.seconds,
        subject=subject,
        code=code,
        detail=detail,
        times=entry.times,
        evidence=entry.line.evidence,
    )


def _killed(entries: list[_Entry]) -> Mapping[str, int]:
    """How much each killed process held, by its number: a line of its own says so, after the one with the cgroup."""
    found = (one for entry in entries for one in events(entry.text) if one[0] is Kind.OUT_OF_MEMORY)
    return {detail.split("\0")[2]: code for _, _, code, detail in found if code is not None}


def _out_of_memory(entry: _Entry, found: Found, killed: Mapping[str, int]) -> Iterator[LogEvent]:
    kind, limited, code, detail = found
    if code is not None:
        return
    cgroup, task, pid = detail.split("\0")
    subject = _owner(limited) if limited else "the host"
    whose = "" if limited else f", of {_owner(cgroup)}"
    yield _event(entry, (kind, subject, killed.get(pid), f"{task} ({pid}){whose}"))


def _owner(cgroup: str) -> str:
    """Whose cgroup it is: Proxmox VE and LXC put containers below lxc, Proxmox VE virtual machines below qemu.slice."""
    for pattern, name in _OWNERS:
        if match := pattern.search(cgroup):
            return f"{name} {match[1]}"
    return f"cgroup {cgroup[:100]}"


def _paths(links: Capture) -> set[str]:
    """Every device between a GPU and its root port; where it could not be read, only the GPUs are known."""
    lines = (line.text for line in links.lines() if line.text.startswith("gpu "))
    return {part for line in lines for part in line.split("/") if _ID.fullmatch(part)}


def _initialised(gpus: Capture) -> Iterator[str]:
    """The driver knows the version of a GPU's BIOS only while it has the GPU in use."""
    for path, lines in gpus.files().items():
        place = path.split("/")[-2]
        if _ID.fullmatch(place) and any(_BIOS.match(line.text) for line in lines):
            yield place


def _uptime(capture: Capture) -> float | None:
    match = _UPTIME.match(capture.first().text)
    return float(match[1]) if match else None


_ID = re.compile(rf"{BUS}\.[0-7]", re.ASCII)
_BIOS = re.compile(r"Video BIOS:\s*[0-9a-fA-F]{2}\.[0-9a-fA-F]{2}\.", re.ASCII)
_END = re.compile(r"end\|(dmesg|journal)\|(whole|part)\|([0-9]{1,9})\|(?: *([0-9]{1,9}\.[0-9]{1,9}))?", re.ASCII)
_LINE = re.compile(r"(?:line|more\|([0-9]{1,9}))\|(.*)", re.ASCII)
_STAMP = re.compile(r"\[ *([0-9]{1,9}\.[0-9]{1,9})\](?:\[[ T0-9C]{1,12}\])?", re.ASCII)
_UPTIME = re.compile(r"([0-9]{1,9}\.[0-9]{1,2}) ", re.ASCII)
_AT_BOOT = re.compile(rf"pci ({BUS}\.[0-7]): \[10de:[0-9a-f]{{4}}\] type .* class 0x03", re.ASCII)
_PLACED = re.compile(rf"({BUS}\.[0-7]): BAR (\d)(?: \[mem [^\]]*\])?: assigned", re.ASCII)
_ABOUT = re.compile(rf"NVRM: The NVIDIA GPU ({BUS}\.[0-7])", re.ASCII)
_FIRMWARE = re.compile(
    r"acpi (\S{1,40}): _OSC: platform (?:does not support \[[^\]]*\bAER\b|retains control)", re.ASCII
)
_OWNERS = (
    (re.compile(r"/lxc(?:\.payload\.|/)([\w.-]{1,64})"), "container"),
    (re.compile(r"/qemu\.slice/(\d{1,9})\.scope"), "virtual machine"),
    (re.compile(r"/docker[-/]([0-9a-f]{12})"), "Docker container"),
    (re.compile(r"/([\w@.:-]{1,80}\.service)"), "service"),
)
_OF_DRIVER = frozenset(
    {Kind.NEEDS_OPEN, Kind.NOT_FOR_OPEN, Kind.NOT_SUPPORTED, Kind.NO_FIRMWARE, Kind.NOT_INITIALISED, Kind.MISMATCH}
)
_ALL_LANES = 100  # per cent
# Of other devices' slots nothing is said here.
_OF_SLOT = frozenset({Kind.CORRECTED, Kind.UNCORRECTED, Kind.PAGE_FAULT, Kind.NO_ROOM, Kind.NARROW})
