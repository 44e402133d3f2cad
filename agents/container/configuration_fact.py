"""A container's configuration as a fact, and what it says about devices."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from gapline.agents.container.config_diff import Edit, unified_diff
from gapline.agents.container.proxmox_config import flag, properties
from gapline.agents.container.setting import Setting
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem

NVIDIA_MAJOR = 195
"""nvidia0…, nvidiactl and nvidia-modeset: the only NVIDIA major that is fixed (open-gpu-kernel-modules,
kernel-open/common/inc/nv-chardev-numbers.h). All others are given out in load order."""

_NVIDIA_NODE = re.compile(r"/dev/nvidia[^/]*(/.*)?")
_DEVICE_KEY = re.compile(r"dev\d+")
_MOUNT_KEY = re.compile(r"mp\d+")
_RULE_OF_NVIDIA = re.compile(rf"c\s{NVIDIA_MAJOR}:.*|/dev/nvidia.*")
CGROUP2_RULE = re.compile(r"lxc\.cgroup2\.devices\.(allow|deny)")
CGROUP1_RULE = re.compile(r"lxc\.cgroup\.devices\.(allow|deny)")


class Form(StrEnum):
    """Whose file it is."""

    PROXMOX = "proxmox"
    LXC = "lxc"


class GivenNode(BaseModel):
    """A node of the host that the configuration puts into the container."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str  # in the container
    host_path: str
    allowed: bool  # a dev[n] entry, which brings its own rule
    setting: Setting


class StartedDevice(BaseModel):
    """A device as Proxmox VE resolved it at the container's last start."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    type: str
    major: int
    minor: int
    at: Evidence


class Granted(BaseModel):
    """A range of the host's ids that root may give to containers, of users (`u`) or groups (`g`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    first: int
    count: int
    at: Evidence


class Configuration(Fact):
    """What the configuration file says, and what the running container shows of it."""

    path: str
    form: Form
    text: tuple[str, ...]  # the file's lines, with private values withheld
    ended: bool  # the last line has its line feed
    keys: tuple[Setting, ...]  # Proxmox VE keys in force; empty for plain LXC
    raw: tuple[Setting, ...]  # lxc.* in order
    pending: tuple[Setting, ...]
    snapshots: tuple[str, ...]
    ignored: tuple[Evidence, ...]
    uid_map: Evidence | None  # first line of the running init's map; None when it is not running
    unified: bool | None  # the host has cgroup v2 only, or not; None when that was not seen
    v1_devices: tuple[Evidence, ...] | None  # the v1 device list; None where there is no v1 device controller
    started: tuple[StartedDevice, ...]
    generated: tuple[Setting, ...] | None = None  # the file for LXC that the last start made; None: not seen
    granted: tuple[Granted, ...] | None = None  # by /etc/subuid and /etc/subgid; None: not seen
    unseen: tuple[Problem, ...] = ()

    @property
    def unprivileged(self) -> bool:
        """As configured. A raw `lxc.idmap` makes Proxmox VE treat the container as unprivileged, too."""
        return any(s.key in ("lxc.idmap", "lxc.id_map") and s.value for s in self.raw) or flag(
            self.value("unprivileged") or "0"
        )

    @property
    def unprivileged_now(self) -> bool | None:
        """As it runs: root inside is not root outside. None when it does not run."""
        if self.uid_map is None:
            return None
        return self.uid_map.text.split()[:2] != ["0", "0"]

    @property
    def name(self) -> str:
        """The container's name as LXC's commands take it."""
        folder, _, file = self.path.rpartition("/")
        return file.removesuffix(".conf") if self.form is Form.PROXMOX else folder.rpartition("/")[2]

    def setting(self, key: str) -> Setting | None:
        """The setting in force; the last one wins, as in Proxmox VE's parser."""
        return next((s for s in reversed(self.keys) if s.key == key), None)

    def value(self, key: str) -> str | None:
        """The value in force."""
        found = self.setting(key)
        return found.value if found else None

    def values(self, key: str) -> tuple[str, ...]:
        """The values of a raw key that counts several times; an empty value takes back those before it."""
        values: tuple[str, ...] = ()
        for s in self.raw:
            if s.key == key:
                values = (*values, s.value) if s.value else ()
        return values

    def raw_line(self, key: str, value: str) -> str:
        """A raw setting as this file writes it."""
        return f"{key}: {value}" if self.form is Form.PROXMOX else f"{key} = {value}"

    def line_after_rules(self) -> int:
        """Where a further device rule belongs: after all others, or at the end of what is in force."""
        rules = self.device_rules()
        return max((s.line for s in rules or (*self.keys, *self.raw)), default=0) + 1

    def diff(self, *edits: Edit) -> str:
        """A unified diff of the file."""
        return unified_diff(self.path, self.text, edits, ended=self.ended)

    def device_entries(self) -> Iterator[tuple[Setting, dict[str, str]]]:
        """The dev[n] entries with their properties."""
        for s in self.keys:
            if _DEVICE_KEY.fullmatch(s.key) and self.setting(s.key) is s:
                yield s, properties(s.value, "path")

    def device_rules(self) -> tuple[Setting, ...]:
        """The raw cgroup v2 device rules, in order."""
        return tuple(s for s in self.raw if CGROUP2_RULE.fullmatch(s.key))

    def nodes(self) -> tuple[GivenNode, ...]:
        """All nodes and folders below /dev that the configuration names."""
        entries = (
            GivenNode(path=path, host_path=path, allowed=True, setting=s)
            for s, parts in self.device_entries()
            if (path := parts.get("path", ""))
        )
        return (*entries, *self._mounted())

    def _mounted(self) -> Iterator[GivenNode]:
        for s in self.keys:
            parts = properties(s.value, "volume")
            source = parts.get("volume", "")
            if _MOUNT_KEY.fullmatch(s.key) and source.startswith("/dev/"):
                yield GivenNode(path=parts.get("mp", source), host_path=source, allowed=False, setting=s)
        for s in self.raw:
            words = s.value.split()
            if s.key == "lxc.mount.entry" and len(words) > 1 and words[0].startswith("/dev/"):
                path = posixpath.normpath("/" + words[1].lstrip("/"))
                yield GivenNode(path=path, host_path=words[0], allowed=False, setting=s)

    @property
    def gpu_nodes(self) -> tuple[GivenNode, ...]:
        """The NVIDIA nodes among them."""
        return tuple(node for node in self.nodes() if _NVIDIA_NODE.fullmatch(node.host_path))

    @property
    def gpu_evidence(self) -> tuple[Evidence, ...]:
        """The lines that make this a GPU container: nodes that are given to it, or rules for their fixed major."""
        rules = (s for s in self.device_rules() if s.key.endswith("allow") and _RULE_OF_NVIDIA.fullmatch(s.value))
        return (*(node.setting.at for node in self.gpu_nodes), *(s.at for s in rules))
