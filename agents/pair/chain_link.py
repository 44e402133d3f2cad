"""One needed node along the whole way: driver, host, container, device rules, access test."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.char_major import CharMajor
from gapline.agents.container.access_test import NodeAccess, Opening
from gapline.agents.container.configuration_fact import Configuration
from gapline.agents.container.device_policy import DevicePolicy
from gapline.agents.container.device_rule import Device
from gapline.agents.container.node_fact import DeviceNodes
from gapline.agents.container.policy_layers import policy_of
from gapline.agents.container.v1_devices import v1_allows
from gapline.agents.device_node import SHARED, DeviceNode
from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.orchestrator.model.outcome import Fact

CONTROL = "/dev/nvidiactl"
UVM = "/dev/nvidia-uvm"
GPU = re.compile(r"/dev/nvidia(\d+)")
CONTROL_MINOR = 255  # nv-chardev-numbers.h


class ChainLink(Fact):
    """What each station says about a node. None: it was not seen there, or it is not there (see `running`)."""

    path: str
    major: CharMajor | None  # of the driver, in /proc/devices
    minor: int
    host: DeviceNode | None
    inside: DeviceNode | None
    allowed: bool | None  # by the rules of the configuration; None when they do not tell
    access: NodeAccess | None

    @property
    def stale(self) -> bool:
        """The node in the container has other numbers than the driver."""
        if self.major is None or self.inside is None or not self.inside.is_character:
            return False
        return self.inside.numbers != (self.major.number, self.minor)

    @property
    def kept_out_by_mode(self) -> bool:
        """The refusal may come from mode and owner, which `container.device_nodes` judges."""
        if self.access is not None and self.access.opening is not None:
            return self.access.opening is Opening.EACCES
        return self.inside is not None and self.inside.permissions & SHARED != SHARED

    @property
    def denied(self) -> bool:
        """The device policy keeps the container's root out: as tried, or else as the rules say."""
        granted = self.access.granted if self.access else None
        if granted is None:
            return self.allowed is False
        if granted or self.stale:
            return False
        if self.access is not None and self.access.opening is not None:
            return self.access.opening is Opening.EPERM
        return not self.kept_out_by_mode or self.allowed is False

    @property
    def tried(self) -> bool:
        """The access test answered."""
        return self.access is not None and self.access.granted is not None


class DeviceChain(Fact):
    """All needed nodes of one container. `running`: its nodes were seen."""

    running: bool
    links: tuple[ChainLink, ...]


def needed_paths(configuration: Configuration, nodes: DeviceNodes | None) -> tuple[str, ...]:
    """The control node, the memory node, and the GPUs that this container was given; other GPUs are no loss."""
    given = [node.path for node in configuration.gpu_nodes]
    seen = [node.path for node in nodes.nodes] if nodes else []
    gpus = sorted({path for path in (*given, *seen) if GPU.fullmatch(path)}, key=lambda path: int(path[11:]))
    return (CONTROL, UVM, *gpus)


def running_policy(configuration: Configuration, driver: NvidiaDriver) -> DevicePolicy:
    """The policy with the nodes of this host."""
    found = {node.path: Device("c", *node.numbers) for node in driver.nodes if node.is_character}
    return policy_of(configuration, found.get)


def chain(configuration: Configuration, driver: NvidiaDriver, nodes: DeviceNodes | None) -> DeviceChain:
    """All stations for all needed nodes."""
    policy = running_policy(configuration, driver)
    links = _links(configuration, driver, nodes, policy)
    return DeviceChain(running=nodes is not None, links=tuple(links))


def _links(
    configuration: Configuration, driver: NvidiaDriver, nodes: DeviceNodes | None, policy: DevicePolicy
) -> Iterator[ChainLink]:
    for path in needed_paths(configuration, nodes):
        major, minor = _numbers(driver, path)
        inside = nodes.node(path) if nodes else None
        device = _device(inside, major, minor)
        yield ChainLink(
            path=path,
            major=major,
            minor=minor,
            host=driver.node(path),
            inside=inside,
            allowed=_allowed(configuration, policy, device) if device else None,
            access=nodes.access(path) if nodes else None,
        )


def _numbers(driver: NvidiaDriver, path: str) -> tuple[CharMajor | None, int]:
    if path == UVM:
        return driver.majors.get("nvidia-uvm"), 0
    if path == CONTROL:
        return driver.majors.get("nvidiactl") or driver.majors.get("nvidia"), CONTROL_MINOR
    return driver.majors.get("nvidia"), int(path[11:])


def _device(inside: DeviceNode | None, major: CharMajor | None, minor: int) -> Device | None:
    if inside is not None and inside.is_character:
        return Device("c", *inside.numbers)
    return Device("c", major.number, minor) if major else None


def _allowed(configuration: Configuration, policy: DevicePolicy, device: Device) -> bool | None:
    if configuration.v1_devices is not None:
        return v1_allows(configuration.v1_devices, device)
    return None if policy.refused else policy.allows(device)
