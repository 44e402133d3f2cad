"""A container's GPU nodes as a fact."""

from __future__ import annotations

from gapline.agents.container.access_test import AccessTest, NodeAccess
from gapline.agents.device_node import DeviceNode
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem


class DeviceNodes(Fact):
    """The nodes by their paths in the container, as the host sees them, and the access test from inside."""

    nodes: tuple[DeviceNode, ...]
    test: AccessTest | None
    untested: Problem | None  # why the test gave no answer

    def node(self, path: str) -> DeviceNode | None:
        """The node at a path in the container."""
        return next((node for node in self.nodes if node.path == path), None)

    def access(self, path: str) -> NodeAccess | None:
        """What the test says about a path."""
        return next((node for node in self.test.nodes if node.path == path), None) if self.test else None
