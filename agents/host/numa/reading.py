"""From captures to the memory of each node."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gapline.agents.host.boot_parameters import BOOT_PARAMETERS, boot_parameters
from gapline.agents.host.cpu.processor import CPUINFO, processor
from gapline.agents.host.numa.cpu_list import members
from gapline.agents.host.numa.fact import ArcSize, NodeMemory, NumaMemory
from gapline.agents.host.numa.node_file import distances, node_number
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import NotApplicableError, ParseError
from gapline.orchestrator.model.source import File, Glob, Source

_NODE = "/sys/devices/system/node"
NODE_CPUS = Glob(f"{_NODE}/node*/cpulist")
HUGE_PAGES = Glob(f"{_NODE}/node*/hugepages/*/nr_hugepages {_NODE}/node*/hugepages/*/free_hugepages")

SOURCES: dict[str, Source] = {
    "nodes": NODE_CPUS,
    "distances": Glob(f"{_NODE}/node*/distance"),
    "memory": Glob(f"{_NODE}/node*/meminfo"),
    "counters": Glob(f"{_NODE}/node*/numastat"),
    "huge": HUGE_PAGES,
    "arc": File("/proc/spl/kstat/zfs/arcstats"),
    "packages": Glob("/sys/devices/system/cpu/cpu*/topology/physical_package_id"),
    "cpuinfo": CPUINFO,
    "boot": BOOT_PARAMETERS,
}


def read(captures: Captures) -> NumaMemory:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
        NotApplicableError: the kernel shows no nodes.
    """
    cpus = captures.have("nodes")
    if cpus is None:
        raise NotApplicableError("this kernel shows no NUMA nodes")
    lists = {node_number(path, lines[0]): lines[0] for path, lines in cpus.files().items()}
    if not lists:
        raise ParseError(cpus.first().evidence, "the CPUs of a NUMA node")
    texts = {name: _by_node(captures.need(name)) for name in ("distances", "memory", "counters")}
    absent = next((number for number in lists for one in texts.values() if number not in one), None)
    if absent is not None:
        raise ParseError(lists[absent].evidence, f"distances, memory and counters of node {absent}")
    huge = _huge(captures.have("huge"))
    cpu = processor(captures.need("cpuinfo"))
    boot = boot_parameters(captures.need("boot"))
    packages = _packages(captures.have("packages")) if cpu.vendor else {}
    return NumaMemory(
        nodes=tuple(
            _node(number, lists[number], {name: one[number] for name, one in texts.items()}, huge)
            for number in sorted(lists)
        ),
        arc=_arc(captures.have("arc")),
        packages=len(packages),
        package_evidence=tuple(line.evidence for line in packages.values()),
        virtual=cpu.virtual,
        switched_off=next((one.evidence for one in boot.in_force if one.text == "numa=off"), None),
        cut=next((one.evidence for one in boot.in_force if one.name == "mem"), None),
    )


def _node(
    number: int, cpus: Line, texts: Mapping[str, tuple[Line, ...]], huge: Mapping[int, tuple[int, int]]
) -> NodeMemory:
    members(cpus)
    fields = _fields(texts["memory"])
    size = {name: _kib(line) for name, line in fields.items() if name not in _COUNTED_IN_PAGES}
    counters = {line.text.partition(" ")[0]: line for line in texts["counters"]}
    lacking = [name for name in _NEEDED if name not in size]
    if lacking or not {"numa_hit", "numa_foreign"} <= counters.keys():
        raise ParseError(
            (texts["memory"] if lacking else texts["counters"])[0].evidence, f"{lacking or 'counters'} of it"
        )
    kept, kept_free = huge.get(number, (0, 0))
    named = sum(size.get(name, 0) for name in _NAMED) + kept
    foreign, hit = (_count(counters[name]) for name in ("numa_foreign", "numa_hit"))
    slab = "KReclaimable" if "KReclaimable" in size else "SReclaimable"
    return NodeMemory(
        number=number,
        cpus=cpus.text.strip(),
        distances=distances(texts["distances"][0]),
        total_kib=size["MemTotal"],
        free_kib=size["MemFree"],
        cache_kib=size["Active(file)"] + size["Inactive(file)"],
        slab_kib=size[slab],
        huge_kib=kept,
        huge_free_kib=kept_free,
        private_kib=size["AnonPages"],
        shared_kib=size["Shmem"],
        unnamed_kib=max(0, size["MemTotal"] - size["MemFree"] - named),
        intended=hit + foreign,
        foreign=foreign,
        cpus_evidence=cpus.evidence,
        total=fields["MemTotal"].evidence,
        free=fields["MemFree"].evidence,
        cache=tuple(fields[name].evidence for name in ("Active(file)", "Inactive(file)", slab)),
        counters=tuple(counters[name].evidence for name in ("numa_hit", "numa_foreign")),
    )


def _by_node(capture: Capture) -> dict[int, tuple[Line, ...]]:
    return {node_number(path, lines[0]): lines for path, lines in capture.files().items()}


def _fields(lines: tuple[Line, ...]) -> dict[str, Line]:
    """By name; every line starts with the number of its node."""
    return {found[1]: line for line in lines if (found := _FIELD.match(line.text))}


def _kib(line: Line) -> int:
    found = _KIB.search(line.text)
    if found is None:
        raise ParseError(line.evidence, "a size in kB")
    return int(found[1])


def _count(line: Line) -> int:
    found = re.fullmatch(r"\w+ ([0-9]{1,19})", line.text, re.ASCII)
    if found is None:
        raise ParseError(line.evidence, "a counter")
    return int(found[1])


def _huge(capture: Capture | None) -> dict[int, tuple[int, int]]:
    """Set aside and free, in KiB, by node."""
    sizes: dict[int, tuple[int, int]] = {}
    for path, (line, *_) in capture.files().items() if capture else ():
        found = re.search(r"/hugepages-([0-9]{1,9})kB/(nr|free)_hugepages$", path, re.ASCII)
        if found is None or re.fullmatch("[0-9]{1,12}", line.text, re.ASCII) is None:
            raise ParseError(line.evidence, "a number of huge pages")
        kib, node = int(found[1]) * int(line.text), node_number(path, line)
        kept, free = sizes.get(node, (0, 0))
        sizes[node] = (kept + kib, free) if found[2] == "nr" else (kept, free + kib)
    return sizes


def _arc(capture: Capture | None) -> ArcSize | None:
    """Lines `name type bytes` after two lines of heading."""
    if capture is None:
        return None
    found = {line.text.split(" ", 1)[0]: line for line in capture.lines()}
    if not {"size", "c_min"} <= found.keys():
        raise ParseError(capture.first().evidence, "the size of ZFS's cache")
    size, least = found["size"], found["c_min"]
    return ArcSize(size_kib=_arc_kib(size), least_kib=_arc_kib(least), evidence=(size.evidence, least.evidence))


def _arc_kib(line: Line) -> int:
    found = re.fullmatch(r"\w+ +[0-9] +([0-9]{1,19})", line.text, re.ASCII)
    if found is None:
        raise ParseError(line.evidence, "name, type and bytes")
    return int(found[1]) >> 10


def _packages(capture: Capture | None) -> dict[int, Line]:
    """One line for each processor. Without a table from the firmware the kernel says -1, or numbers clusters."""
    found: dict[int, Line] = {}
    for lines in capture.files().values() if capture else ():
        line = lines[0]
        if re.fullmatch(r"-1|[0-9]{1,6}", line.text, re.ASCII) is None:
            raise ParseError(line.evidence, "the number of a processor")
        found.setdefault(int(line.text), line)
    return {} if -1 in found else found


_NEEDED = ("MemTotal", "MemFree", "Active(file)", "Inactive(file)", "SReclaimable", "AnonPages", "Shmem", "FilePages")
# Parts that do not overlap; HugePages_* are counts of the default size and come from elsewhere for all sizes.
_NAMED = ("FilePages", "AnonPages", "Slab", "KernelStack", "PageTables", "SecPageTables")
_COUNTED_IN_PAGES = {"HugePages_Total", "HugePages_Free", "HugePages_Surp"}
_FIELD = re.compile(r"Node [0-9]{1,5} ([\w()]{1,40}): ", re.ASCII)
_KIB = re.compile(r": +([0-9]{1,15}) kB$", re.ASCII)
