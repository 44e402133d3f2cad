"""The device list of cgroup v1, which the kernel shows as text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gapline.agents.container.device_rule import Device
from gapline.orchestrator.model.evidence import Evidence

_LINE = re.compile(r"([abc]) (\*|\d{1,10}):(\*|\d{1,10}) ([rwm]{1,3})")


def v1_allows(lines: Iterable[Evidence], device: Device, access: str = "rw") -> bool | None:
    """Whether one line covers the device and all of the access (Linux security/device_cgroup.c, match_exception).

    None where the list is ``a *:* rwm``: the kernel then does not show what is excepted from it, and also for a line
    of unknown form.
    """
    answer: bool | None = False
    for line in lines:
        match = _LINE.fullmatch(line.text)
        if match is None or match[1] == "a":
            return None
        kind, major, minor, granted = match.groups()
        numbers = major in ("*", str(device.major)) and minor in ("*", str(device.minor))
        if kind == device.type and numbers and set(access) <= set(granted):
            answer = True
    return answer
