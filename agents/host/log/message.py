"""One message of the kernel as an event. Only what is sure becomes one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gapline.agents.host.log.fact import Kind

Found = tuple[Kind, str, int | None, str]  # kind, subject, code, detail
BUS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}"


@dataclass(frozen=True, slots=True)
class Message:
    """A pattern, and what a match of it says."""

    pattern: re.Pattern[str]
    found: Callable[[re.Match[str]], Found]


def events(text: str) -> Iterator[Found]:
    """What one line says: at most one thing."""
    for message in _MESSAGES:
        if match := message.pattern.search(text):
            yield message.found(match)
            return


def _message(pattern: str, found: Callable[[re.Match[str]], Found]) -> Message:
    return Message(re.compile(pattern, re.ASCII), found)


def _fixed(kind: Kind, detail: str = "") -> Callable[[re.Match[str]], Found]:
    """The subject is the pattern's first group, if it has one; else the GPU that a line before named."""
    return lambda match: (kind, _function(match[1]) if match.re.groups else "", None, detail or match[0][:200])


def _function(bus_id: str) -> str:
    """NVIDIA leaves the function out, the IOMMU the domain."""
    bus_id = bus_id.lower()
    whole = bus_id if bus_id.count(":") > 1 else f"0000:{bus_id}"
    domain, rest = whole.split(":", 1)
    return f"{int(domain, 16):04x}:{rest if '.' in rest else rest + '.0'}"


def _xid(match: re.Match[str]) -> Found:
    return Kind.XID, _function(match[1]), int(match[2]), match[3][:300]


def _bar(match: re.Match[str]) -> Found:
    return Kind.NO_ROOM, _function(match[1]), None, f"BAR {match[2]}"


def _bar_of_driver(match: re.Match[str]) -> Found:
    return Kind.NO_ROOM, _function(match["bus"]), None, f"BAR {match['n']}"


def _narrow(match: re.Match[str]) -> Found:
    detail = f"x{match[3]} at {match[2]} GT/s, limited by {match[4]}, of x{match[6]} at {match[5]} GT/s"
    return Kind.NARROW, _function(match[1]), 100 * int(match[3]) // max(int(match[6]), 1), detail


def _link_error(match: re.Match[str]) -> Found:
    corrected = match[2].startswith("Correct")
    kind = Kind.CORRECTED if corrected else Kind.UNCORRECTED
    return kind, _function(match[1]), None, f"{match[2]}{match[3] or ''}, {match[4].strip()}"


def _oom(match: re.Match[str]) -> Found:
    whole = match[1] == "CONSTRAINT_MEMCG"
    return Kind.OUT_OF_MEMORY, match[2] if whole and match[2] else "", None, f"{match[3]}\0{match[4]}\0{match[5]}"


def _killed(match: re.Match[str]) -> Found:
    return Kind.OUT_OF_MEMORY, "", int(match[3]) + int(match[4]), f"\0{match[2]}\0{match[1]}"


def _hardware(match: re.Match[str]) -> Found:
    said = match[1] or match[2]
    corrected = said.lower().startswith(("corrected", "ce"))
    return Kind.HARDWARE_CORRECTED if corrected else Kind.HARDWARE_UNCORRECTED, "", None, match[0][:200]


def _hung(match: re.Match[str]) -> Found:
    return Kind.HUNG, match[1], None, f"{match[1]} blocked for more than {match[2]} s"


_ANY = r"(?:\.[0-7])?"
_MESSAGES = (
    _message(rf"NVRM: Xid \((?:PCI:)?({BUS})(?: GPU-I:\d+)?[^)]*\): (\d{{1,4}}),? ?(.*)", _xid),
    _message(rf"SXid \(PCI:({BUS}{_ANY})\): \d+, Fatal", _fixed(Kind.SWITCH)),
    _message(rf"NVRM: GPU (?:at )?(?:PCI:)?({BUS}{_ANY}): GPU has fallen off the bus", _fixed(Kind.OFF_BUS)),
    _message(rf"nvidia ({BUS}\.\d): Unable to change power state from D3cold", _fixed(Kind.OFF_BUS)),
    _message(r"NVRM: fell off the bus", _fixed(Kind.OFF_BUS)),
    _message(r"NVRM: .*(?:heartbeat timed out|rpcRecvPoll timed ?out|GSP.* timed out)", _fixed(Kind.GSP)),
    _message(r"NVRM: .*requires use of the NVIDIA open kernel modules", _fixed(Kind.NEEDS_OPEN)),
    _message(r"NVRM: .*is not supported by open|NVRM: Open nvidia\.ko is only ready", _fixed(Kind.NOT_FOR_OPEN)),
    _message(r"NVRM: .*(?:supported through the NVIDIA|is not supported by the)", _fixed(Kind.NOT_SUPPORTED)),
    _message(
        rf"nvidia ({BUS}\.\d): Direct firmware load for nvidia/\S+ failed with error -2", _fixed(Kind.NO_FIRMWARE)
    ),
    _message(r"NVRM: .*No firmware image found", _fixed(Kind.NO_FIRMWARE)),
    _message(rf"NVRM: GPU ({BUS}\.\d): (?:RmInitAdapter|rm_init_adapter) failed", _fixed(Kind.NOT_INITIALISED)),
    _message(r"NVRM: API mismatch: .*", _fixed(Kind.MISMATCH)),
    _message(rf"NVRM: BAR(?P<n>\d) is 0M @ 0x0 \(PCI:(?P<bus>{BUS}\.\d)", _bar_of_driver),
    _message(
        rf"({BUS}\.\d): BAR (\d)(?: \[mem [^\]]*\])?: (?:can't assign|failed to assign|no space for) ?(?!\[io)", _bar
    ),
    _message(
        rf"({BUS}\.\d): .*available PCIe bandwidth, limited by ([\d.]{{1,6}}) GT/s PCIe x(\d{{1,2}}) link at "
        rf"({BUS}\.\d) \(capable of .* with ([\d.]{{1,6}}) GT/s PCIe x(\d{{1,2}}) link\)",
        _narrow,
    ),
    _message(
        rf"({BUS}\.\d): (?:AER: )?PCIe Bus Error: severity=((?:Unc|C)orrect(?:ed|able))( \([\w-]+\))?, type=([^,]*)",
        _link_error,
    ),
    _message(r"AMD-Vi: .*IO_PAGE_FAULT (?:device=)([0-9a-f:.]{7,16})", _fixed(Kind.PAGE_FAULT)),
    _message(rf"({BUS}\.\d): AMD-Vi: .*IO_PAGE_FAULT", _fixed(Kind.PAGE_FAULT)),
    _message(r"DMAR: \[DMA [^\]]*\] Request device \[([0-9a-f:.]{7,16})\]", _fixed(Kind.PAGE_FAULT)),
    _message(
        r"oom-kill:constraint=(\w+),.*?(?:oom_memcg=([^,]*),|global_oom,)task_memcg=([^,]*),task=(.{0,64}),pid=(\d+)",
        _oom,
    ),
    _message(
        r"of memory: Killed process (\d{1,10}) \((.{0,64})\),? total-vm:\d+kB, anon-rss:(\d{1,15})kB, file-rss:\d+kB, "
        r"shmem-rss:(\d{1,15})kB",
        _killed,
    ),
    _message(
        r"\[Hardware Error\]: (?:event severity: )?(?:\w+ )?([Cc]orrected|[Uu]ncorrected|[Dd]eferred|recoverable|fatal)"
        r"|EDAC .*: \d+ (CE|UE) ",
        _hardware,
    ),
    _message(r"INFO: task (.{1,40}):\d+ blocked for more than (\d{1,6}) seconds", _hung),
    _message(r"(?:soft lockup|hard LOCKUP|rcu\w*: .*detected (?:expedited )?stall)", _fixed(Kind.LOCKUP)),
)
