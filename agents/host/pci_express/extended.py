"""The extended capabilities of GPUs and of the ports above them that tell of peer-to-peer traffic and windows.

All configuration spaces are read by one `od` and walked by one `awk`: of a space's 4096 bytes a few dozen matter.
Offsets and fields: Linux include/uapi/linux/pci_regs.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gapline.agents.host.pci_express.walk import WALK
from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import CollectError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Script

ACS, RESIZABLE_BAR = 0x0D, 0x15

# Without CAP_SYS_ADMIN each space ends after 64 bytes; the sum of all bytes then falls short of the files' sizes.
# Bytes that are zero stay unset in the array, which keeps it small.
_ON_DEVICES = r"""
files=
value() { v=; [ -r "$1" ] && read -r v <"$1"; }
gpu() { :; }
device() {
  files="$files $2/config"
  value "$2/vendor"; l=$v
  value "$2/device"; l="$l $v"
  value "$2/iommu_group/type"; echo "device $1 $l $v"
}
"""
_LISTED = r"""
# shellcheck disable=SC2086  # paths in sysfs hold no blanks
[ -z "$files" ] || { stat -c '%s %n' $files; cat $files | od -An -v -tx1; } | awk '
function byte(at) { return at in b ? 16 * index(h, substr(b[at], 1, 1)) + index(h, substr(b[at], 2)) - 17 : 0 }
function list(name, from, to,  at, id, next_at, hops, i, l) {
  at = from + 256
  for (hops = 0; hops < 96 && at >= from + 256 && at + 4 <= to; hops++) {
    id = byte(at) + 256 * byte(at + 1)
    next_at = int(byte(at + 2) / 16) + 16 * byte(at + 3)
    if (id == 13 || id == 21) {
      l = ""
      for (i = at; i < at + 28 && i < to; i++) l = l " " (i in b ? b[i] : "00")
      printf "extended %s %x%s\n", name, at - from, l
    }
    at = from + next_at
  }
}
BEGIN { h = "0123456789abcdef" }
NF == 2 { size[++n] = $1; parts = split($2, part, "/"); name[n] = part[parts - 1]; all += $1; next }
{ for (i = 1; i <= NF; i++) { if ($i != "00") b[k] = $i; k++ } }
END {
  if (k != all) { print "short " k + 0 " " all; exit }
  for (i = 1; i <= n; i++) { list(name[i], at, at + size[i]); at += size[i] }
}'
echo end
"""

EXTENDED = Script(name="pci_extended", text=_ON_DEVICES.lstrip() + WALK + _LISTED.lstrip(), root=True)


@dataclass(frozen=True, slots=True)
class Extended:
    """One device: who made it, how its group is translated, and its extended capabilities by their ids."""

    vendor: str  # "0x1022"
    device: str
    translation: str  # of its IOMMU group: "DMA", "DMA-FQ", "identity", …; empty: it is in none
    line: Line
    capabilities: dict[int, tuple[bytes, Evidence]] = field(default_factory=dict)


def extended(capture: Capture) -> Mapping[str, Extended]:
    """What `EXTENDED` printed, by bus id.

    Raises:
        CollectError: the kernel gave the first 64 bytes of each space only.
        ParseError: another form, or an output that breaks off.
    """
    found: dict[str, Extended] = {}
    line = capture.first()
    for line in capture.lines():
        if one := _DEVICE.fullmatch(line.text):
            found[one[1]] = Extended(vendor=one[2], device=one[3], translation=one[4], line=line)
        elif one := _CAPABILITY.fullmatch(line.text):
            data = bytes.fromhex(one[3])
            if one[1] not in found:
                raise ParseError(line.evidence, "the device before its capabilities")
            found[one[1]].capabilities[int.from_bytes(data[:2], "little")] = data, line.evidence
        elif _SHORT.fullmatch(line.text):
            raise CollectError(capture.target, capture.shown, _WITHHELD)
        elif line.text != "end":
            raise ParseError(line.evidence, "a device, or one of its extended capabilities")
    if line.text != "end":
        raise ParseError(line.evidence, "the end of the extended capabilities")
    return found


_WITHHELD = Problem(
    kind=ProblemKind.DENIED,
    detail="only the first 64 bytes of the configuration spaces were given",
    hint="Read as root of the initial user name space (CAP_SYS_ADMIN).",
)
_ID = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_DEVICE = re.compile(rf"device ({_ID}) (0x[0-9a-f]{{4}}) (0x[0-9a-f]{{4}}) ?([\w-]{{0,20}})", re.ASCII)
_CAPABILITY = re.compile(rf"extended ({_ID}) ([0-9a-f]{{3}})((?: [0-9a-f]{{2}}){{8,28}})", re.ASCII)
_SHORT = re.compile(r"short [0-9]+ [0-9]+", re.ASCII)
