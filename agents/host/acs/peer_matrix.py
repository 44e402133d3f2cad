"""The two tables of `nvidia-smi topo` that tell how pairs of GPUs reach each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.agents.host.acs.fact import PeerLink
from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.source import Command, Source

SOURCES: dict[str, Source] = {
    "topology": Command(("nvidia-smi", "topo", "-m"), timeout=20, wakes_gpu=True),
    "peers": Command(("nvidia-smi", "topo", "-p2p", "r"), timeout=20, wakes_gpu=True),
}


def peer_link(topology: Capture, peers: Capture) -> tuple[PeerLink | None, tuple[Evidence, ...]]:
    """How the GPUs reach each other, and the rows that say so; None where nvidia-smi lists no two of them.

    Raises:
        ParseError: a table has another form, or none is there.
    """
    joined, reads = _matrix(topology), _matrix(peers)
    over_pcie = [pair for pair, (way, _) in joined.items() if not way.startswith("NV")]
    able = [pair for pair, (answer, _) in reads.items() if answer == "OK"]
    rows = tuple(dict.fromkeys(line.evidence for _, line in (*joined.values(), *reads.values())))
    if not joined or not reads:
        return None, rows
    if not over_pcie:
        return PeerLink.NVLINK, rows
    return (PeerLink.PCIE if set(over_pcie) & set(able) else PeerLink.NONE), rows


def _matrix(capture: Capture) -> Mapping[tuple[str, str], tuple[str, Line]]:
    """The cells between two different GPUs, by their names."""
    columns: list[str] = []
    cells: dict[tuple[str, str], tuple[str, Line]] = {}
    for line in capture.lines():
        fields = [_STYLE.sub("", cell).strip() for cell in line.text.split("\t")]
        if not columns and _GPU.fullmatch(fields[min(1, len(fields) - 1)]):
            columns = fields
        elif columns and _GPU.fullmatch(fields[0]):
            cells |= {(fields[0], column): (cell, line) for column, cell in _pairs(line, columns, fields)}
    if not columns or any((other, one) not in cells for one, other in cells):
        raise ParseError(capture.first().evidence, "a table of GPUs")
    return cells


def _pairs(line: Line, columns: list[str], fields: list[str]) -> Iterator[tuple[str, str]]:
    for column, cell in zip(columns[1:], fields[1:], strict=False):
        if not _GPU.fullmatch(column) or column == fields[0]:
            continue
        if _CELL.fullmatch(cell) is None:
            raise ParseError(line.evidence, "how the GPU reaches another, such as NODE, NV18 or OK")
        yield column, cell


_STYLE = re.compile(r"\x1b\[[0-9;]*m")  # nvidia-smi underlines the head
_GPU = re.compile(r"GPU[0-9]{1,3}", re.ASCII)
_CELL = re.compile(r"[A-Z]{1,4}[0-9]{0,2}", re.ASCII)
