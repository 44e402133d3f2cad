"""From captures to the fact about memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.host.cpu.fact import Setting
from gapline.agents.host.cpu.processor import CPUINFO, processor
from gapline.agents.host.memory.fact import HugePool, MemoryController, MemoryPolicy, MemorySlot, SwapArea
from gapline.agents.host.memory.slots import SLOTS, memory_slots
from gapline.agents.host.numa.reading import NODE_CPUS
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import CollectError, ParseError
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import File, Glob, Source

_THP, _VM, _HUGE = "/sys/kernel/mm/transparent_hugepage", "/proc/sys/vm", "/sys/kernel/mm/hugepages/hugepages-*"
_CHOICES = ("enabled", "defrag", "shmem_enabled")
_NUMBERS = ("swappiness", "zone_reclaim_mode", "overcommit_memory", "overcommit_ratio", "overcommit_kbytes")

SOURCES: dict[str, Source] = {
    "settings": Glob(" ".join((*(f"{_THP}/{name}" for name in _CHOICES), *(f"{_VM}/{name}" for name in _NUMBERS)))),
    "huge": Glob(" ".join(f"{_HUGE}/{name}_hugepages" for name in ("nr", "free", "resv"))),
    "memory": File("/proc/meminfo"),
    "swaps": File("/proc/swaps"),
    "errors": Glob("/sys/devices/system/edac/mc/mc*/ue_count /sys/devices/system/edac/mc/mc*/ce_count"),
    "slots": SLOTS,
    "nodes": NODE_CPUS,
    "cpuinfo": CPUINFO,
}


def read(captures: Captures) -> MemoryPolicy:
    """The fact. What the firmware says about modules is asked on bare metal only, and may stay unseen.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
    """
    nodes = captures.have("nodes")
    virtual = processor(captures.need("cpuinfo")).virtual
    slots, unseen = ((), ()) if virtual else _slots(captures)
    return MemoryPolicy(
        total_kib=_total(captures.need("memory")),
        settings=dict(_settings(captures.need("settings"))),
        pools=tuple(_pools(captures.have("huge"))),
        swaps=tuple(_swaps(captures.have("swaps"))),
        slots=slots,
        controllers=tuple(_controllers(captures.have("errors"))),
        nodes_with_cpus=sum(bool(lines[0].text) for lines in nodes.files().values()) if nodes else 1,
        virtual=virtual,
        unseen=unseen,
    )


def _slots(captures: Captures) -> tuple[tuple[MemorySlot, ...], tuple[Problem, ...]]:
    try:
        slots = memory_slots(captures.need("slots"))
    except CollectError as error:
        return (), (error.problem,)
    return slots, () if slots else (_NO_TABLE,)


def _total(capture: Capture) -> int:
    line = next((line for line in capture.lines() if line.text.startswith("MemTotal:")), capture.first())
    found = re.fullmatch(r"MemTotal: +([0-9]{1,15}) kB", line.text, re.ASCII)
    if found is None:
        raise ParseError(line.evidence, "MemTotal in kB")
    return int(found[1])


def _settings(capture: Capture) -> Iterator[tuple[str, Setting]]:
    """A choice shows all values, with the one in force in brackets."""
    for path, (line, *_) in capture.files().items():
        name = path.rpartition("/")[2]
        form = r"(?:.* )?\[([a-z+_]{1,30})\](?: .*)?" if name in _CHOICES else r"([0-9]{1,15})"
        found = re.fullmatch(form, line.text, re.ASCII)
        if found is None:
            raise ParseError(line.evidence, "a value in brackets" if name in _CHOICES else "a number")
        yield name, Setting(value=found[1], evidence=line.evidence)


def _pools(capture: Capture | None) -> Iterator[HugePool]:
    sizes: dict[int, dict[str, Line]] = {}
    for path, (line, *_) in capture.files().items() if capture else ():
        found = re.search(r"/hugepages-([0-9]{1,9})kB/(nr|free|resv)_hugepages$", path, re.ASCII)
        if found is None:
            raise ParseError(line.evidence, "a number of huge pages")
        sizes.setdefault(int(found[1]), {})[found[2]] = line
    for page_kib, lines in sizes.items():
        if lines.keys() != {"nr", "free", "resv"}:
            raise ParseError(next(iter(lines.values())).evidence, "huge pages that are set aside, free and reserved")
        kept, free, promised = (_number(lines[name]) for name in ("nr", "free", "resv"))
        evidence = tuple(line.evidence for line in lines.values())
        yield HugePool(page_kib=page_kib, kept=kept, free=free, promised=promised, evidence=evidence)


def _swaps(capture: Capture | None) -> Iterator[SwapArea]:
    """A heading, then one line an area; blanks in names are written in octal."""
    for line in capture.lines() if capture else ():
        if line.number == 1 and line.text.split()[:1] == ["Filename"]:
            continue
        found = re.fullmatch(r"(/\S{1,200})\s+\S+\s+([0-9]{1,15})\s+([0-9]{1,15})\s+-?[0-9]{1,6}", line.text, re.ASCII)
        if found is None:
            raise ParseError(line.evidence, "a swap area with size and use in kB")
        yield SwapArea(path=found[1], size_kib=int(found[2]), used_kib=int(found[3]), evidence=line.evidence)


def _controllers(capture: Capture | None) -> Iterator[MemoryController]:
    counts: dict[str, dict[str, Line]] = {}
    for path, (line, *_) in capture.files().items() if capture else ():
        controller, name = path.split("/")[-2:]
        counts.setdefault(controller, {})[name] = line
    for controller, lines in sorted(counts.items()):
        if lines.keys() != {"ue_count", "ce_count"}:
            raise ParseError(next(iter(lines.values())).evidence, "corrected and uncorrected errors of a controller")
        yield MemoryController(
            name=controller,
            corrected=_number(lines["ce_count"]),
            uncorrected=_number(lines["ue_count"]),
            evidence=(lines["ue_count"].evidence, lines["ce_count"].evidence),
        )


def _number(line: Line) -> int:
    if re.fullmatch("[0-9]{1,15}", line.text, re.ASCII) is None:
        raise ParseError(line.evidence, "a number")
    return int(line.text)


_NO_TABLE = Problem(kind=ProblemKind.MISSING, detail="the firmware's table (SMBIOS) describes no memory modules")
