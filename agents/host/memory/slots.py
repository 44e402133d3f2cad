"""The places for memory modules, from the firmware's table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.host.memory.fact import MemorySlot
from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import CollectError, ParseError
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Script

# The table also holds serial numbers, which stay on the machine. Older versions call the set speed a clock speed.
SLOTS = Script(
    name="memory_slots",
    root=True,
    text=r"""
command -v dmidecode >/dev/null || { echo missing; exit 0; }
dmidecode -q -t 17 | sed -nE \
  's/^Memory Device$/device/p; s/^[[:space:]]+(Size|Locator|Bank Locator|Type|Speed|Configured .* Speed): */\1|/p'
echo end
""",
)


def memory_slots(capture: Capture) -> tuple[MemorySlot, ...]:
    """What `SLOTS` printed. Sockets and channels are told only where all names of the board follow one known form.

    Raises:
        CollectError: dmidecode is not installed.
        ParseError: another form, or an output that breaks off.
    """
    if capture.first().text == "missing":
        raise CollectError(capture.target, capture.shown, _MISSING)
    slots = tuple(_slot(block) for block in _blocks(capture) if block["Type"].text != "Type|Flash")
    for form in _FORMS:
        places = [form.fullmatch(f"{slot.bank}|{slot.locator}") for slot in slots]
        if places and all(places):
            return tuple(_placed(slot, place) for slot, place in zip(slots, places, strict=True) if place)
    return slots


def _blocks(capture: Capture) -> Iterator[dict[str, Line]]:
    block: dict[str, Line] | None = None
    line = capture.first()
    for line in capture.lines():
        name = line.text.partition("|")[0]
        if line.text in {"device", "end"}:
            if block is not None:
                yield _complete(block, line)
            block = {}
        elif block is None or _FIELD.fullmatch(line.text) is None:
            raise ParseError(line.evidence, "a property of a memory module")
        else:
            block["Configured" if name.startswith("Configured") else name] = line
    if line.text != "end":
        raise ParseError(line.evidence, "the end of the memory modules")


def _complete(block: dict[str, Line], after: Line) -> dict[str, Line]:
    if not block.keys() >= {"Size", "Locator", "Bank Locator", "Type"}:
        raise ParseError(after.evidence, "size, type and place of a memory module before it")
    return block


def _slot(block: dict[str, Line]) -> MemorySlot:
    speeds = [block[name] for name in ("Speed", "Configured") if name in block]
    return MemorySlot(
        locator=_value(block["Locator"]),
        bank=_value(block["Bank Locator"]),
        size_mib=_mib(block["Size"]),
        rated_mts=_mts(block.get("Speed")),
        set_mts=_mts(block.get("Configured")),
        socket="",
        channel="",
        evidence=block["Size"].evidence,
        speeds=tuple(line.evidence for line in speeds),
    )


def _placed(slot: MemorySlot, place: re.Match[str]) -> MemorySlot:
    told = place.groupdict()
    channel = f"{told.get('controller') or ''}{told['channel']}"
    return slot.model_copy(update={"socket": told.get("socket") or "0", "channel": channel})


def _value(line: Line) -> str:
    return line.text.partition("|")[2].strip()


def _mib(line: Line) -> int:
    text = _value(line)
    if text in {"No Module Installed", "Not Installed"}:
        return 0
    found = re.fullmatch(r"([0-9]{1,9}) (MB|GB|TB)", text, re.ASCII)
    if found is None:
        raise ParseError(line.evidence, "the size of a memory module, or that none is there")
    return int(found[1]) << {"MB": 0, "GB": 10, "TB": 20}[found[2]]


def _mts(line: Line | None) -> int | None:
    """Empty places have `Unknown`."""
    found = re.fullmatch(r"([0-9]{1,6}) (?:MT/s|MHz)", _value(line), re.ASCII) if line else None
    return int(found[1]) if found else None


_MISSING = Problem(kind=ProblemKind.COMMAND_MISSING, detail="dmidecode is not installed", hint="apt install dmidecode")
_FIELD = re.compile(r"(?:Size|Locator|Bank Locator|Type|Speed|Configured [A-Za-z ]{1,20})\|[^\x00-\x1f\x7f]{0,80}")
# Bank and locator, joined by a bar, in the forms of AMD's reference firmware, of server boards, and of desktop boards.
_FORMS = tuple(
    re.compile(form)
    for form in (
        r"P(?P<socket>\d) CHANNEL (?P<channel>[A-P])\|DIMM \d",
        r"[^|]*\|(?:CPU|P)(?P<socket>\d)[_-]?DIMM[_-]?(?P<channel>[A-P])\d?",
        r"[^|]*\|DIMM_P(?P<socket>\d)_(?P<channel>[A-P])\d",
        r"[^|]*\|DIMM[_ ]?(?P<channel>[A-H])\d",
        r"[^|]*\|(?:Controller(?P<controller>\d)-)?Channel(?P<channel>[A-H])-DIMM\d",
    )
)
