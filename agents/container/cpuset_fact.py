"""The CPUs of a container as a fact."""

from __future__ import annotations

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class CpuList(Fact):
    """Numbers of CPUs or of memory nodes, and the line that lists them."""

    numbers: tuple[int, ...]
    evidence: Evidence


class NodeCpus(Fact):
    """The CPUs of a NUMA node of the host; none for memory of a GPU or a CXL device."""

    number: int
    cpus: tuple[int, ...]


class Cpuset(Fact):
    """What the limit cgroup asks for and gets. None: nothing is asked for.

    Where its cpuset controller is off, `effective` is what the scheduler allows the container's init.
    """

    unified: bool
    online: CpuList  # CPUs of the host
    nodes: tuple[NodeCpus, ...]  # of the host; empty where the kernel shows none
    cores: tuple[tuple[int, ...], ...]  # the threads of each core of the host
    asked: CpuList | None = None
    effective: CpuList
    asked_nodes: CpuList | None = None
    effective_nodes: CpuList

    @property
    def restricted(self) -> bool:
        """The container has fewer CPUs than are online."""
        return set(self.effective.numbers) < set(self.online.numbers)

    def nodes_with_its_cpus(self) -> tuple[int, ...]:
        """The host's nodes of which the container has at least one CPU."""
        mine = set(self.effective.numbers)
        return tuple(node.number for node in self.nodes if mine.intersection(node.cpus))
