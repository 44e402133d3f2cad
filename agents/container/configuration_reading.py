"""How a container's configuration is read, with what the running container and its host show beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gapline.agents.container import configuration_idmap
from gapline.agents.container.configuration_fact import Configuration, Granted, StartedDevice
from gapline.agents.container.configuration_file import CONFIG, GENERATED
from gapline.agents.container.configuration_form import sort_lines
from gapline.agents.container.lxc_config import parse_lxc
from gapline.agents.container.proxmox_config import ProxmoxConfig
from gapline.agents.container.setting import Setting, in_file
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import CollectError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import File, Glob, Source

_STARTED = re.compile(r"([bc]):(\d{1,10}):(\d{1,10}):(/.*)")
_UID_MAP = re.compile(r"\s*\d+\s+\d+\s+\d+\s*")

SOURCES: Mapping[str, Source] = {
    "config": CONFIG,
    "uid_map": File("/proc/{init}/uid_map", root=True),
    "unified": File("/sys/fs/cgroup/cgroup.controllers"),
    "v1_devices": Glob(
        "/sys/fs/cgroup/devices/lxc/{ct}/devices.list /sys/fs/cgroup/devices/lxc.payload.{ct}/devices.list", root=True
    ),
    "generated": GENERATED,
    "subuid": File("/etc/subuid"),
    "subgid": File("/etc/subgid"),
    "started": File("/var/lib/lxc/{ct}/passthrough/devices", root=True),
}


def read(captures: Captures) -> Configuration:
    """The fact. Only the file itself is indispensable.

    Raises:
        CollectError: the file could not be read.
        ParseError: it, or the uid map, has an unknown form.
    """
    capture = captures.need("config")
    path = capture.shown.split()[-1] if capture.shown.split() else ""
    lines = tuple(in_file(line, path) for line in capture.lines())
    form, content = sort_lines(path, lines)
    unseen: list[Problem] = []
    return Configuration(
        path=path,
        form=form,
        text=tuple(line.text for line in lines),
        ended=capture.out.endswith(b"\n"),
        keys=content.keys if isinstance(content, ProxmoxConfig) else (),
        raw=content.raw if isinstance(content, ProxmoxConfig) else content.settings,
        pending=content.pending if isinstance(content, ProxmoxConfig) else (),
        snapshots=content.snapshots if isinstance(content, ProxmoxConfig) else (),
        ignored=tuple(line.evidence for line in content.ignored),
        uid_map=_uid_map(_seen(captures, "uid_map", unseen)),
        unified=_unified(captures["unified"]),
        v1_devices=_v1_devices(_seen(captures, "v1_devices", unseen)),
        granted=_granted(captures["subuid"], captures["subgid"]),
        generated=_generated(captures["generated"]),
        started=_started(_seen(captures, "started", unseen)),
        unseen=tuple(unseen),
    )


def _seen(captures: Captures, name: str, unseen: list[Problem]) -> Capture | None:
    """The capture; None when the thing is absent or the container does not run, and then that is no gap."""
    try:
        return captures.have(name)
    except CollectError as error:
        if error.problem.kind is not ProblemKind.NOT_RUNNING:
            unseen.append(error.problem)
        return None


def _generated(capture: Capture) -> tuple[Setting, ...] | None:
    """It judges nothing here: `pair.configuration_in_force` says what is missing where it could not be read."""
    if capture.problem is not None:
        return None
    path = capture.shown.split()[-1]
    return parse_lxc(in_file(line, path) for line in capture.lines()).settings or None


def _granted(users: Capture, groups: Capture) -> tuple[Granted, ...] | None:
    """None unless both were seen: a missing file says nothing about what is granted."""
    if users.problem is not None or groups.problem is not None:
        return None
    for_users, for_groups = configuration_idmap.granted(users, "u"), configuration_idmap.granted(groups, "g")
    return None if for_users is None or for_groups is None else (*for_users, *for_groups)


def _uid_map(capture: Capture | None) -> Evidence | None:
    line = capture.first() if capture else None
    if line is None or not line.text.strip():
        return None
    if not _UID_MAP.fullmatch(line.text):
        raise ParseError(line.evidence, "three numbers of a uid map")
    return line.evidence


def _unified(capture: Capture) -> bool | None:
    if capture.problem is None:
        return True
    return False if capture.problem.kind is ProblemKind.MISSING else None


def _v1_devices(capture: Capture | None) -> tuple[Evidence, ...] | None:
    if capture is None:
        return None
    return tuple(line.evidence for lines in capture.files().values() for line in lines)


def _started(capture: Capture | None) -> tuple[StartedDevice, ...]:
    found = ((line, _STARTED.fullmatch(line.text)) for line in (capture.lines() if capture else ()))
    return tuple(
        StartedDevice(type=match[1], major=int(match[2]), minor=int(match[3]), path=match[4], at=line.evidence)
        for line, match in found
        if match
    )
