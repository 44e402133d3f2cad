"""A source bound to one target: what a lane reads."""

from __future__ import annotations

from dataclasses import dataclass

from gapline.orchestrator.model.source import Source


@dataclass(frozen=True, slots=True)
class Binding:
    """What the placeholders of a container's sources stand for. `init` and `cgroup` are empty when it is stopped."""

    ct: str
    init: str
    config: str  # path on the host
    cgroup: str  # limit cgroup below /sys/fs/cgroup, with a leading slash


@dataclass(frozen=True, slots=True)
class Item:
    """One reading. `enter` names the container to go into with lxc-attach; None reads where the lane runs."""

    target: str
    source: Source
    binding: Binding | None = None
    enter: str | None = None
