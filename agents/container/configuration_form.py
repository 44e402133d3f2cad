"""Which of the two forms a configuration file has."""

from __future__ import annotations

import re

from gapline.agents.container.configuration_fact import Form
from gapline.agents.container.lxc_config import LxcConfig, parse_lxc
from gapline.agents.container.proxmox_config import ProxmoxConfig, parse_proxmox
from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence

_PROXMOX_PATH = re.compile(r"/etc/pve/(?:nodes/[^/]+/)?lxc/\d+\.conf")
_LXC_PATH = re.compile(r"/.*/config")
_LXC_LINE = re.compile(r"\s*lxc\.[a-z0-9_.-]+\s*=.*")


def sort_lines(path: str, lines: tuple[Line, ...]) -> tuple[Form, ProxmoxConfig | LxcConfig]:
    """The form follows from the path; for a file from elsewhere, from its lines.

    Raises:
        ParseError: no line of it is a setting.
    """
    proxmox, lxc = parse_proxmox(lines), parse_lxc(lines)
    known_as_lxc = _LXC_PATH.fullmatch(path) is not None
    looks_like_lxc = not proxmox.keys and any(_LXC_LINE.fullmatch(line.text) for line in lines)
    if not _PROXMOX_PATH.fullmatch(path) and (known_as_lxc or looks_like_lxc):
        if lxc.settings:
            return Form.LXC, lxc
    elif proxmox.keys or proxmox.raw:
        return Form.PROXMOX, proxmox
    at = next((line.evidence for line in lines if line.text.strip()), None)
    raise ParseError(at or Evidence(target="", source=path, line=1, text=""), "settings of a container")
