"""From captures to the places of GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gapline.agents.host.affinity.fact import GpuAffinity, GpuPlace, NodeCpus, Vector
from gapline.agents.host.cpu.processor import CPUINFO, processor
from gapline.agents.host.numa.cpu_list import members
from gapline.agents.host.numa.node_file import distances, node_number
from gapline.agents.host.numa.reading import NODE_CPUS
from gapline.agents.host.numa.reading import SOURCES as NUMA
from gapline.agents.host.pci_express.walk import WALK
from gapline.agents.host.pci_gpu import PCI_GPUS, nvidia_gpus, pci_gpus
from gapline.agents.host.tuning.reading import SOURCES as TUNING
from gapline.agents.host.tuning.reading import read as tuning
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import CollectError, NotApplicableError, ParseError
from gapline.orchestrator.model.source import Script, Source

_ON_GPUS = r"""
value() { v=; [ -r "$1" ] && read -r v <"$1"; }
gpu() {
  value "$2/numa_node"; n=$v
  value "$2/local_cpulist"
  echo "gpu $1 $n $v"
  for i in "$2"/msi_irqs/*; do
    [ -e "$i" ] || continue
    i=${i##*/}
    value "/proc/irq/$i/effective_affinity_list"; e=$v
    value "/proc/irq/$i/smp_affinity_list"
    echo "vector $1 $i $e|$v"
  done
}
device() { :; }
"""
# A row of /proc/interrupts has a column for each CPU; a sum of each row is enough.
_COUNTS = r"""
awk 'NR == 1 { n = NF } / nvidia/ {
  s = 0; for (i = 2; i <= n + 1; i++) s += $i
  sub(":", "", $1); printf "count %s %.0f\n", $1, s
}' /proc/interrupts
echo end
"""

SOURCES: dict[str, Source] = {
    "pci": PCI_GPUS,
    "places": Script(name="gpu_places", text=_ON_GPUS.lstrip() + WALK + _COUNTS.lstrip()),
    "nodes": NODE_CPUS,
    "distances": NUMA["distances"],
    "cpuinfo": CPUINFO,
    **TUNING,
}


@dataclass(frozen=True, slots=True)
class _Node:
    cpus: tuple[int, ...]
    distances: tuple[int, ...]


def read(captures: Captures) -> GpuAffinity:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
        NotApplicableError: the host drives no NVIDIA GPU.
    """
    driven = tuple(gpu.bus_id for gpu in nvidia_gpus(pci_gpus(captures.need("pci"))))
    nodes = _nodes(captures.have("nodes"), captures.have("distances"))
    places = _places(captures.need("places"), nodes)
    absent = next((gpu for gpu in driven if gpu not in places), None)
    if absent:
        raise ParseError(captures["places"].first().evidence, f"a line for GPU {absent}")
    return GpuAffinity(
        gpus=tuple(places[gpu] for gpu in driven),
        cpus=sum(len(node.cpus) for node in nodes.values()),
        nodes_with_cpus=sum(bool(node.cpus) for node in nodes.values()),
        balanced=_balanced(captures),
        virtual=processor(captures.need("cpuinfo")).virtual,
    )


def _nodes(cpus: Capture | None, table: Capture | None) -> dict[int, _Node]:
    files = table.files() if table else {}
    far = {node_number(path, lines[0]): distances(lines[0]) for path, lines in files.items()}
    lists = {node_number(path, lines[0]): members(lines[0]) for path, lines in cpus.files().items()} if cpus else {}
    return {number: _Node(lists[number], far.get(number, ())) for number in sorted(lists)}


def _places(capture: Capture, nodes: Mapping[int, _Node]) -> dict[str, GpuPlace]:
    gpus: dict[str, tuple[re.Match[str], Line]] = {}
    vectors: dict[str, list[tuple[re.Match[str], Line]]] = {}
    counts: dict[str, Line] = {}
    line = capture.first()
    for line in capture.lines():
        if gpu := _GPU.fullmatch(line.text):
            gpus[gpu[1]] = gpu, line
        elif vector := _VECTOR.fullmatch(line.text):
            vectors.setdefault(vector[1], []).append((vector, line))
        elif count := _COUNT.fullmatch(line.text):
            counts[count[1]] = line
        elif line.text != "end":
            raise ParseError(line.evidence, "a gpu, vector or count line")
    if line.text != "end":
        raise ParseError(line.evidence, "the end of the GPUs' places")
    return {
        bus_id: _place(gpu, line, tuple(_vector(one, at, counts) for one, at in vectors.get(bus_id, ())), nodes)
        for bus_id, (gpu, line) in gpus.items()
    }


def _place(gpu: re.Match[str], line: Line, vectors: tuple[Vector, ...], nodes: Mapping[int, _Node]) -> GpuPlace:
    node = int(gpu[2]) if gpu[2] and int(gpu[2]) >= 0 else None
    return GpuPlace(
        bus_id=gpu[1],
        node=node,
        local_cpus=gpu[3],
        nodes=tuple(_seen_from(node, nodes)),
        vectors=vectors,
        evidence=line.evidence,
    )


def _seen_from(node: int | None, nodes: Mapping[int, _Node]) -> Iterator[NodeCpus]:
    """Nothing where the node is not known."""
    own = nodes.get(node) if node is not None else None
    if own is None or len(own.distances) != len(nodes):
        return
    for other, distance in zip(nodes.values(), own.distances, strict=True):
        yield NodeCpus(distance=distance, cpus=other.cpus)


def _vector(vector: re.Match[str], line: Line, counts: Mapping[str, Line]) -> Vector:
    count = counts.get(vector[2])
    served = members(line._replace(text=vector[3]))
    return Vector(
        number=int(vector[2]),
        served_by=served,
        allowed=vector[4],
        count=int(count.text.rpartition(" ")[2]) if count else None,
        evidence=(line.evidence, *((count.evidence,) if count else ())),
    )


def _balanced(captures: Captures) -> bool | None:
    """Without systemd, or with services unread, it is not known; that hides nothing that is judged."""
    try:
        return bool(tuning(captures).running("irqbalance"))
    except (CollectError, NotApplicableError):
        return None


_ID = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_CPUS = r"[0-9,-]{0,4000}"
_GPU = re.compile(rf"gpu ({_ID}) (-?[0-9]{{1,5}})? ?({_CPUS})", re.ASCII)
_VECTOR = re.compile(rf"vector ({_ID}) ([0-9]{{1,7}}) ({_CPUS})\|({_CPUS})", re.ASCII)
_COUNT = re.compile(r"count ([0-9]{1,7}) ([0-9]{1,18})", re.ASCII)
