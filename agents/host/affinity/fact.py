"""Which CPUs are near each GPU, and which serve its interrupts."""

from __future__ import annotations

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class Vector(Fact):
    """One interrupt vector of a GPU."""

    number: int
    served_by: tuple[int, ...]  # CPUs; empty where this kernel does not tell
    allowed: str  # CPUs that it may be moved to, as Linux writes them
    count: int | None  # since boot; None where no driver has it in use
    evidence: tuple[Evidence, ...]


class NodeCpus(Fact):
    """The CPUs of one node, and how far they are from a GPU by the firmware's table: 10 is the GPU's own node."""

    distance: int
    cpus: tuple[int, ...]


class GpuPlace(Fact):
    """One GPU that this host drives."""

    bus_id: str
    node: int | None  # its NUMA node; None: the firmware does not tell
    local_cpus: str  # as the kernel sees them: all CPUs where the node is not known
    nodes: tuple[NodeCpus, ...]  # empty where its own is not known
    vectors: tuple[Vector, ...]  # empty while the driver holds none, as with an idle GPU without persistence
    evidence: Evidence

    @property
    def used(self) -> tuple[Vector, ...]:
        """Vectors that have fired, and of which the kernel tells who serves them."""
        return tuple(vector for vector in self.vectors if vector.count and vector.served_by)

    def near(self, remote: float) -> tuple[int, ...]:
        """The CPUs that are nearer than `remote`."""
        return tuple(sorted(cpu for node in self.nodes if node.distance < remote for cpu in node.cpus))


class GpuAffinity(Fact):
    """All GPUs that this host drives."""

    gpus: tuple[GpuPlace, ...]
    cpus: int
    nodes_with_cpus: int
    balanced: bool | None  # irqbalance is active; None: not known
    virtual: Evidence | None
