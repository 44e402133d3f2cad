"""What kind of processor a host has: the first CPU of /proc/cpuinfo, which is enough."""

from __future__ import annotations

import re

from gapline.agents.host.cpu.fact import Processor
from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.source import Command

CPUINFO = Command(("sed", "/^$/q", "/proc/cpuinfo"))


def processor(capture: Capture) -> Processor:
    """What `CPUINFO` printed.

    Raises:
        ParseError: another form.
    """
    fields: dict[str, tuple[str, Line]] = {}
    for line in capture.lines():
        name, colon, value = line.text.partition(":")
        if not colon and line.text.strip():
            raise ParseError(line.evidence, "a name and a value of /proc/cpuinfo")
        fields.setdefault(name.strip(), (value.strip(), line))
    if "processor" not in fields:
        raise ParseError(capture.first().evidence, "the first CPU of /proc/cpuinfo")
    flags, at = fields.get("flags", ("", capture.first()))
    return Processor(
        vendor=fields.get("vendor_id", ("", at))[0],
        name=fields.get("model name", ("", at))[0],
        family=_whole(fields.get("cpu family", ("", at))[0]),
        model=_whole(fields.get("model", ("", at))[0]),
        virtual=at.evidence if "hypervisor" in flags.split() else None,
    )


def _whole(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


_NUMBER = re.compile("[0-9]{1,9}", re.ASCII)
