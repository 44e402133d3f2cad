"""What an IOMMU does with the addresses that GPUs send."""

from __future__ import annotations

from enum import StrEnum

from gapline.agents.host.acs.fact import PeerLink
from gapline.agents.host.boot_parameters import BootParameters
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem


class Mode(StrEnum):
    """Of a GPU's group, as Linux names its domain (ABI/testing/sysfs-kernel-iommu_groups)."""

    OFF = "off"  # in no group: no IOMMU, or one that leaves this device alone
    PASSED = "identity"  # passthrough: bus addresses are physical addresses
    LAZY = "DMA-FQ"  # translated; stale translations are dropped in batches
    STRICT = "DMA"  # translated; each unmapping waits for the IOMMU. Before Linux 5.15 it also stands for lazy
    OTHER = "other"  # blocked, or owned by a program

    @property
    def is_translated(self) -> bool:
        """Whether bus addresses are not physical addresses."""
        return self in {Mode.LAZY, Mode.STRICT}


class GpuGroup(Fact):
    """One GPU that this host drives."""

    bus_id: str
    group: int | None
    mode: Mode | None  # None: the kernel does not tell
    others: tuple[str, ...]  # bus ids of the devices that share the group
    evidence: tuple[Evidence, ...]


class DmaTranslation(Fact):
    """The GPUs, and what decides how they reach memory and each other."""

    gpus: tuple[GpuGroup, ...]
    units: tuple[str, ...]  # IOMMUs that are on: "ivhd0", "dmar3", "smmu3.0x0000000012000000"
    boot: BootParameters
    passed_through: tuple[Evidence, ...]  # devices bound to vfio-pci
    peers: PeerLink | None  # None: nvidia-smi did not say, or there is one GPU only
    peer_evidence: tuple[Evidence, ...]
    peers_unseen: Problem | None

    @property
    def translated(self) -> tuple[GpuGroup, ...]:
        """GPUs whose addresses are translated."""
        return tuple(gpu for gpu in self.gpus if gpu.mode and gpu.mode.is_translated)
