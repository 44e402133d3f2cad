"""PCI configuration space as `od` prints it, decoded as far as the PCI Express capability goes.

Offsets and fields: Linux include/uapi/linux/pci_regs.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence

HEADER_BYTES = 64
"""What the kernel shows to everybody; all beyond needs CAP_SYS_ADMIN."""

SPEEDS_GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
_ASPM = {1: "L0s", 2: "L1"}
_ROW = 16
_MOST_CAPABILITIES = 48
_PCI_EXPRESS = 0x10
_STATUS, _HAS_LIST, _LIST = 0x06, 0x10, 0x34


@dataclass(frozen=True, slots=True)
class PciExpress:
    """The fields of the PCI Express capability that matter here, and the rows that hold the controls."""

    payload_bytes: int  # MaxPayload in force
    payload_supported_bytes: int
    read_request_bytes: int  # MaxReadReq in force
    target_speed_gts: float | None
    power_states: tuple[str, ...]  # link states that may be entered to save power: "L0s", "L1"
    control: Evidence
    link_control: Evidence  # the row that holds Link Control


@dataclass(frozen=True, slots=True)
class ConfigSpace:
    """The bytes of one device, and the rows they came in."""

    data: bytes
    rows: tuple[Line, ...]

    @property
    def is_short(self) -> bool:
        """Whether the capabilities were withheld, which says nothing about them."""
        return len(self.data) <= HEADER_BYTES

    @property
    def is_gone(self) -> bool:
        """Nobody answers on the bus: every byte reads as ones."""
        return bool(self.data) and not self.data.strip(b"\xff")

    def express(self) -> PciExpress | None:
        """The capability, None where the device has none or it lies beyond what was read."""
        at = self._capability(_PCI_EXPRESS)
        if at is None or at + 0x32 > len(self.data):
            return None
        control = self._u16(at + 0x08)
        return PciExpress(
            payload_bytes=128 << (control >> 5 & 7),
            payload_supported_bytes=128 << (self._u16(at + 0x04) & 7),
            read_request_bytes=128 << (control >> 12 & 7),
            target_speed_gts=SPEEDS_GTS.get(self._u16(at + 0x30) & 0xF),
            power_states=tuple(name for bit, name in _ASPM.items() if self._u16(at + 0x10) & bit),
            control=self.rows[(at + 0x08) // _ROW].evidence,
            link_control=self.rows[(at + 0x10) // _ROW].evidence,
        )

    def _capability(self, wanted: int) -> int | None:
        if self.is_short or not self._u16(_STATUS) & _HAS_LIST:
            return None
        at = self.data[_LIST] & 0xFC
        for _ in range(_MOST_CAPABILITIES):  # a broken device can link in a circle
            if at < HEADER_BYTES or at + 1 >= len(self.data):
                return None
            if self.data[at] == wanted:
                return at
            at = self.data[at + 1] & 0xFC
        return None

    def _u16(self, at: int) -> int:
        return int.from_bytes(self.data[at : at + 2], "little")


def config_spaces(capture: Capture) -> Mapping[str, ConfigSpace]:
    """What ``od -Ax -v -tx1`` printed for each device, with its bus id in front of every row.

    Raises:
        ParseError: a row has another form, or does not follow the one before.
    """
    rows: dict[str, list[Line]] = {}
    data: dict[str, bytes] = {}
    for line in capture.lines():
        match = _DUMP.fullmatch(line.text)
        if match is None or int(match[2], 16) != len(data.get(match[1], b"")):
            raise ParseError(line.evidence, "a bus id, an offset, and up to 16 bytes in hexadecimal")
        data[match[1]] = data.get(match[1], b"") + bytes.fromhex(match[3])
        rows.setdefault(match[1], []).append(line)
    return {bus_id: ConfigSpace(data[bus_id], tuple(rows[bus_id])) for bus_id in data}


_DUMP = re.compile(r"([0-9a-f:.]{12,16}) ([0-9a-f]{4,8})((?: +[0-9a-f]{2}){0,16}) *", re.ASCII)
