"""The memory of a host: modules, errors, and the kernel's rules for it."""

from __future__ import annotations

from gapline.agents.host.cpu.fact import Setting
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem


class HugePool(Fact):
    """Huge pages of one size that are set aside."""

    page_kib: int
    kept: int
    free: int
    promised: int  # of the free ones: mapped by a process that has not touched them yet
    evidence: tuple[Evidence, ...]

    @property
    def unused_kib(self) -> int:
        """What nobody has asked for."""
        return max(0, self.free - self.promised) * self.page_kib


class SwapArea(Fact):
    """One line of /proc/swaps."""

    path: str
    size_kib: int
    used_kib: int
    evidence: Evidence


class MemorySlot(Fact):
    """A place for a memory module, as the firmware describes it."""

    locator: str
    bank: str
    size_mib: int  # 0: empty
    rated_mts: int | None  # million transfers per second that the module can do
    set_mts: int | None  # that the firmware has set
    socket: str  # of the processor it hangs on; empty where the board's names do not tell
    channel: str
    evidence: Evidence
    speeds: tuple[Evidence, ...]


class MemoryController(Fact):
    """Errors that a memory controller counted since its driver was loaded (EDAC)."""

    name: str  # "mc0"
    corrected: int
    uncorrected: int
    evidence: tuple[Evidence, ...]


class MemoryPolicy(Fact):
    """Settings by name: "enabled", "defrag", "shmem_enabled" of transparent huge pages, and those of /proc/sys/vm."""

    total_kib: int
    settings: dict[str, Setting]
    pools: tuple[HugePool, ...]
    swaps: tuple[SwapArea, ...]
    slots: tuple[MemorySlot, ...]  # empty in a virtual machine, or where they were not seen
    controllers: tuple[MemoryController, ...]  # empty where no driver counts errors
    nodes_with_cpus: int
    virtual: Evidence | None
    unseen: tuple[Problem, ...]

    def value(self, name: str) -> str:
        """Of a setting; empty where this kernel has none of that name."""
        return self.settings[name].value if name in self.settings else ""
