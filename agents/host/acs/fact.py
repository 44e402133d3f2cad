"""What decides which way data between two GPUs of a host takes."""

from __future__ import annotations

from enum import StrEnum

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem

REQUEST_REDIRECT, COMPLETION_REDIRECT = 0x04, 0x08


class PeerLink(StrEnum):
    """How GPUs of this host reach each other, by nvidia-smi."""

    PCIE = "PCI Express"  # at least one pair
    NVLINK = "NVLink"  # every pair
    NONE = "none"  # the driver offers no peer-to-peer between any two


class AcsPort(Fact):
    """A port above GPUs that has Access Control Services."""

    bus_id: str
    vendor: str  # "0x1022"
    device: str
    control: int  # the ACS Control register
    gpus: tuple[str, ...]  # bus ids of the GPUs below
    evidence: Evidence

    @property
    def redirects(self) -> bool:
        """Whether requests or completions between two devices below are sent up to the root complex."""
        return bool(self.control & (REQUEST_REDIRECT | COMPLETION_REDIRECT))


class PeerPaths(Fact):
    """The GPUs that this host drives, and the ports above them."""

    gpus: tuple[str, ...]
    ports: tuple[AcsPort, ...]
    translation: dict[str, str]  # by GPU: the type of its IOMMU group ("DMA-FQ", "identity"); empty without IOMMU
    passed_through: tuple[Evidence, ...]  # devices bound to vfio-pci
    peers: PeerLink | None  # None: nvidia-smi did not say
    peer_evidence: tuple[Evidence, ...]
    unseen: tuple[Problem, ...]
