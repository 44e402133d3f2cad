"""From captures to the way in which an IOMMU treats the GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gapline.agents.host.acs.fact import PeerLink
from gapline.agents.host.acs.peer_matrix import SOURCES as MATRICES
from gapline.agents.host.acs.peer_matrix import peer_link
from gapline.agents.host.boot_parameters import BOOT_PARAMETERS, boot_parameters
from gapline.agents.host.pci_gpu import PCI_GPUS, PciGpu, nvidia_gpus, pci_gpus
from gapline.agents.host.translation.fact import DmaTranslation, GpuGroup, Mode
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Glob, Source, Stat

SOURCES: dict[str, Source] = {
    "pci": PCI_GPUS,
    "units": Stat("/sys/class/iommu/*"),
    "groups": Stat("/sys/kernel/iommu_groups/*/devices/*"),
    "types": Glob("/sys/kernel/iommu_groups/*/type"),
    "boot": BOOT_PARAMETERS,
    "passed_through": Stat("/sys/bus/pci/drivers/vfio-pci/*:*"),
    **MATRICES,
}
_Peers = tuple[PeerLink | None, tuple[Evidence, ...], Problem | None]


def read(captures: Captures) -> DmaTranslation:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
        NotApplicableError: the host drives no NVIDIA GPU.
    """
    driven = nvidia_gpus(pci_gpus(captures.need("pci")))
    members = _members(captures.have("groups"))
    types = _types(captures.have("types"))
    units, bound = captures.have("units"), captures.have("passed_through")
    peers, rows, unseen = _peers(captures) if len(driven) > 1 else (None, (), None)
    return DmaTranslation(
        gpus=tuple(_gpu(gpu, members, types) for gpu in driven),
        units=tuple(line.text.partition("|")[0].rpartition("/")[2] for line in units.lines()) if units else (),
        boot=boot_parameters(captures.need("boot")),
        passed_through=tuple(line.evidence for line in bound.lines()) if bound else (),
        peers=peers,
        peer_evidence=rows,
        peers_unseen=unseen,
    )


def _members(capture: Capture | None) -> dict[int, dict[str, Line]]:
    """The devices of each group."""
    found: dict[int, dict[str, Line]] = {}
    for line in capture.lines() if capture else ():
        one = _MEMBER.match(line.text)
        if one is None:
            raise ParseError(line.evidence, "a device in an IOMMU group")
        found.setdefault(int(one[1]), {})[one[2]] = line
    return found


def _types(capture: Capture | None) -> dict[int, Line]:
    found: dict[int, Line] = {}
    for path, (line, *_rest) in capture.files().items() if capture else ():
        group = re.search(r"/([0-9]{1,6})/type$", path, re.ASCII)
        if group is None or re.fullmatch(r"[A-Za-z-]{1,20}", line.text, re.ASCII) is None:
            raise ParseError(line.evidence, "the type of an IOMMU group")
        found[int(group[1])] = line
    return found


def _gpu(gpu: PciGpu, members: Mapping[int, Mapping[str, Line]], types: Mapping[int, Line]) -> GpuGroup:
    """No group means that no IOMMU stands between; a group whose type is not shown stays open."""
    group = next((number for number, devices in members.items() if gpu.bus_id in devices), None)
    if group is None:
        return GpuGroup(bus_id=gpu.bus_id, group=None, mode=Mode.OFF, others=(), evidence=(gpu.evidence,))
    kind = types.get(group)
    lines = (members[group][gpu.bus_id], *((kind,) if kind else ()))
    return GpuGroup(
        bus_id=gpu.bus_id,
        group=group,
        mode=_mode(kind.text) if kind else None,
        others=tuple(name for name in members[group] if name != gpu.bus_id),
        evidence=tuple(line.evidence for line in lines),
    )


def _mode(text: str) -> Mode:
    return next((mode for mode in (Mode.PASSED, Mode.LAZY, Mode.STRICT) if mode.value == text), Mode.OTHER)


def _peers(captures: Captures) -> _Peers:
    """Without nvidia-smi it is not known how the GPUs talk, which hides nothing else."""
    problem = captures["topology"].problem or captures["peers"].problem
    if problem:
        return None, (), problem
    peers, rows = peer_link(captures["topology"], captures["peers"])
    return peers, rows, None if peers else _NO_PAIR


_NO_PAIR = Problem(
    kind=ProblemKind.UNSEEN,
    detail="nvidia-smi lists fewer than two GPUs, so how they reach each other is not known",
    hint="host.gpu_state tells which GPUs it does not list.",
)
_MEMBER = re.compile(r"/sys/kernel/iommu_groups/([0-9]{1,6})/devices/([\w.:@-]{1,80})\|", re.ASCII)
