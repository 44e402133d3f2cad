"""From captures to the ways between GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.host.acs.fact import AcsPort, PeerLink, PeerPaths
from gapline.agents.host.acs.peer_matrix import SOURCES as MATRICES
from gapline.agents.host.acs.peer_matrix import peer_link
from gapline.agents.host.pci_express.extended import ACS, EXTENDED, Extended, extended
from gapline.agents.host.pci_express.reading import SOURCES as LINKS
from gapline.agents.host.pci_express.reading import gpu_paths
from gapline.agents.host.pci_gpu import PCI_GPUS, nvidia_gpus, pci_gpus
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.errors import NotApplicableError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Source, Stat

SOURCES: dict[str, Source] = {
    "pci": PCI_GPUS,
    "links": LINKS["links"],
    "extended": EXTENDED,
    "passed_through": Stat("/sys/bus/pci/drivers/vfio-pci/*:*"),
    **MATRICES,
}


def read(captures: Captures) -> PeerPaths:
    """The fact.

    Raises:
        CollectError: the ports' configuration spaces could not be read.
        ParseError: something has an unknown form.
        NotApplicableError: there are no two GPUs, or no port above them is to be seen.
    """
    driven = tuple(gpu.bus_id for gpu in nvidia_gpus(pci_gpus(captures.need("pci"))))
    if len(driven) == 1:
        raise NotApplicableError(f"{driven[0]} is the only GPU that this host drives, so it has no peer")
    known = gpu_paths(captures.need("links"))
    absent = next((gpu for gpu in driven if gpu not in known), None)
    if absent:
        raise ParseError(captures["links"].first().evidence, f"a line for GPU {absent}")
    paths = {gpu: known[gpu] for gpu in driven}
    if all(len(path) == 1 for path in paths.values()):
        raise NotApplicableError("no port above the GPUs is visible, as in a virtual machine: its host decides")
    spaces = extended(captures.need("extended"))
    unread = next((bus_id for path in paths.values() for bus_id in path if bus_id not in spaces), None)
    if unread:
        raise ParseError(captures["extended"].first().evidence, f"a device line for {unread}")
    bound = captures.have("passed_through")
    peers, rows, problems = _peers(captures)
    return PeerPaths(
        gpus=driven,
        ports=tuple(_ports(paths, spaces)),
        translation={gpu: spaces[gpu].translation for gpu in driven},
        passed_through=tuple(line.evidence for line in bound.lines()) if bound else (),
        peers=peers,
        peer_evidence=rows,
        unseen=problems,
    )


def _ports(paths: Mapping[str, tuple[str, ...]], spaces: Mapping[str, Extended]) -> Iterator[AcsPort]:
    for bus_id in dict.fromkeys(port for path in paths.values() for port in path[:-1]):
        space = spaces[bus_id]
        if ACS not in space.capabilities:
            continue
        data, evidence = space.capabilities[ACS]
        yield AcsPort(
            bus_id=bus_id,
            vendor=space.vendor,
            device=space.device,
            control=int.from_bytes(data[6:8], "little"),
            gpus=tuple(gpu for gpu, path in paths.items() if bus_id in path),
            evidence=evidence,
        )


def _peers(captures: Captures) -> tuple[PeerLink | None, tuple[Evidence, ...], tuple[Problem, ...]]:
    """Without nvidia-smi it is not known how the GPUs talk, which is said and does not hide the registers."""
    problem = captures["topology"].problem or captures["peers"].problem
    if problem:
        return None, (), (problem,)
    peers, rows = peer_link(captures["topology"], captures["peers"])
    return peers, rows, () if peers else (_NO_PAIR,)


_NO_PAIR = Problem(
    kind=ProblemKind.UNSEEN,
    detail="nvidia-smi lists fewer than two GPUs, so how they reach each other is not known",
    hint="host.gpu_state tells which GPUs it does not list.",
)
