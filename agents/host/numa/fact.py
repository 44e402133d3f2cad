"""What the memory of a host's NUMA nodes holds."""

from __future__ import annotations

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class NodeMemory(Fact):
    """One node. Sizes are in KiB, as the kernel gives them."""

    number: int
    cpus: str  # "0-31,64-95"; empty for memory of a GPU or a CXL device, and for places that are held free for them
    distances: tuple[int, ...]  # firmware's relative costs to each node, 10 for itself: a hint, no measurement
    total_kib: int
    free_kib: int
    cache_kib: int  # file pages that can be dropped or written back
    slab_kib: int  # kernel objects that can be given back
    huge_kib: int  # set aside as huge pages of any size, used or not
    huge_free_kib: int
    private_kib: int  # anonymous memory of processes
    shared_kib: int  # shared memory and tmpfs
    unnamed_kib: int  # used, and counted nowhere: ZFS's cache, pinned buffers of drivers, per-CPU data
    intended: int  # pages that were asked of this node since boot
    foreign: int  # of these, how many another node gave (numa_foreign)
    cpus_evidence: Evidence
    total: Evidence
    free: Evidence
    cache: tuple[Evidence, ...]
    counters: tuple[Evidence, ...]

    @property
    def foreign_share(self) -> float:
        """The share of pages asked of this node that another one gave, since boot."""
        return self.foreign / self.intended if self.intended else 0.0


class ArcSize(Fact):
    """The cache of ZFS, which no counter of a node holds. Sizes in KiB."""

    size_kib: int
    least_kib: int  # to which it shrinks when memory is asked for
    evidence: tuple[Evidence, ...]

    @property
    def given_back_kib(self) -> int:
        """What it gives back when memory is asked for."""
        return max(0, self.size_kib - self.least_kib)


class NumaMemory(Fact):
    """All nodes that are online, and what explains them."""

    nodes: tuple[NodeMemory, ...]
    arc: ArcSize | None  # None: no ZFS
    packages: int  # processors that carry online CPUs; 0 where the kernel does not tell in a form that can be trusted
    package_evidence: tuple[Evidence, ...]
    virtual: Evidence | None
    switched_off: Evidence | None  # numa=off on the kernel's command line
    cut: Evidence | None  # mem= on the kernel's command line

    @property
    def with_cpus(self) -> tuple[NodeMemory, ...]:
        """Nodes that have CPUs. The others are memory of devices and judged by nobody here."""
        return tuple(node for node in self.nodes if node.cpus)

    def usable_kib(self, node: NodeMemory) -> int:
        """At most what a process bound to the node can get without swapping.

        Free memory, cache and reclaimable kernel objects, as the kernel reckons MemAvailable (mm/show_mem.c); and of
        ZFS's cache as much as can lie on the node, since nothing tells where it does.
        """
        arc = min(node.unnamed_kib, self.arc.given_back_kib) if self.arc else 0
        return min(node.total_kib, node.free_kib + node.cache_kib + node.slab_kib + arc)
