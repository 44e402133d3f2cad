"""An invented GPU container on an invented machine, as its host and a shell inside it would show it."""

from __future__ import annotations

from dataclasses import dataclass

from gapline.agents.container.access_test import ACCESS
from gapline.agents.container.configuration import SOURCES as CONFIGURATION
from gapline.agents.container.device_nodes import SOURCES as NODES
from gapline.agents.container.gpu_processes import PROCESSES
from gapline.agents.container.library_listing import LIBRARIES
from gapline.orchestrator.collect.item import Binding
from gapline.orchestrator.model.source import Source
from tests.bench.machine import Machine, node_rows

_LIBRARIES = "/usr/lib/x86_64-linux-gnu"
_NAMES = ("libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so")
_LIMITS = (
    ("Max cpu time", "unlimited", "unlimited", "seconds"),
    ("Max file size", "unlimited", "unlimited", "bytes"),
    ("Max data size", "unlimited", "unlimited", "bytes"),
    ("Max stack size", "8388608", "unlimited", "bytes"),
    ("Max core file size", "0", "unlimited", "bytes"),
    ("Max resident set", "unlimited", "unlimited", "bytes"),
    ("Max processes", "1546023", "1546023", "processes"),
    ("Max open files", "524288", "524288", "files"),
    ("Max locked memory", "unlimited", "unlimited", "bytes"),
    ("Max address space", "unlimited", "unlimited", "bytes"),
    ("Max file locks", "unlimited", "unlimited", "locks"),
    ("Max pending signals", "1546023", "1546023", "signals"),
    ("Max msgqueue size", "819200", "819200", "bytes"),
    ("Max nice priority", "0", "0", ""),
    ("Max realtime priority", "0", "0", ""),
    ("Max realtime timeout", "unlimited", "unlimited", "us"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuContainer:
    """What one container differs in from another."""

    binding: Binding
    config: str
    uid_map: str  # "0 0 4294967295" in a privileged one
    processes: tuple[tuple[int, int, str], ...]  # host pid, pid inside, name; the init first
    denied: frozenset[str] = frozenset()  # nodes that the device policy refuses
    started: str = ""  # what Proxmox VE resolved the dev[n] entries to


def container(machine: Machine, it: GpuContainer) -> dict[Source, str]:
    """The output of every source that agents read for it while it runs."""
    init = it.binding.init
    found: dict[Source, str] = {
        CONFIGURATION["config"]: it.config,
        CONFIGURATION["uid_map"]: _map(it.uid_map),
        CONFIGURATION["unified"]: "cpuset cpu io memory hugetlb pids rdma misc dmem\n",
        NODES["nodes"]: f"/proc/{init}/root/dev/null|character special file|1|3|666|0|0\n" + _nodes(machine, init),
        ACCESS: _access(machine, it.denied),
        LIBRARIES: _libraries(machine.driver),
        PROCESSES: "".join(_process(it.uid_map, *one, first=one == it.processes[0]) for one in it.processes)
        + f"count|{len(it.processes) - 1}\nend\n",
    }
    if it.started:
        found[CONFIGURATION["started"]] = it.started
    return found


def listing(it: GpuContainer, state: str = "RUNNING") -> str:
    """What the survey of containers prints about it: its state, the lines that name devices, its cgroup."""
    name, init, path = it.binding.ct, it.binding.init, it.binding.config
    lines = [f"ct|{name}|{state}|{init}|{path}"]
    for number, line in enumerate(it.config.splitlines(), start=1):
        if line.startswith(("[", "dev")) or "nvidia" in line or "devices.allow" in line:
            lines.append(f"cf|{name}|{number}:{line}")
    if init:
        lines.append(f"cg|{name}|0::/lxc/{name}/ns/init.scope")
    return "".join(f"{line}\n" for line in lines)


def users(it: GpuContainer, unit: str) -> str:
    """What the survey prints about its processes that hold a GPU."""
    return "".join(f"gp|{pid}|0::/lxc/{it.binding.ct}/ns/system.slice/{unit}\n" for pid, _, _ in it.processes[1:])


def _map(text: str) -> str:
    inside, outside, count = text.split()
    return f"{inside:>10} {outside:>10} {count:>10}\n"


def _shown(machine: Machine) -> list[str]:
    """The nodes in the container, as a shell in the C locale expands /dev/nvidia*."""
    paths = [line.partition("|")[0] for line in node_rows(machine).splitlines()]
    return sorted(path for path in paths if "caps" not in path and "modeset" not in path)


def _nodes(machine: Machine, init: str) -> str:
    prefix = f"/proc/{init}/root"
    rows = {line.partition("|")[0]: line for line in node_rows(machine, prefix).splitlines()}
    return "".join(f"{rows[prefix + path]}\n" for path in _shown(machine))


def _access(machine: Machine, denied: frozenset[str]) -> str:
    lines = ["sh|dash", "id|0"]
    lines += [f"node|{path}|char|{'nn' if path in denied else 'yy'}" for path in _shown(machine)]
    for path in ("/dev/nvidiactl", "/dev/nvidia-uvm"):
        lines.append(f"open|{path}|{'Operation not permitted' if path in denied else 'ok'}")
    return "".join(f"{line}\n" for line in (*lines, "end"))


def _libraries(version: str) -> str:
    lines = []
    for name in _NAMES:
        real = f"{_LIBRARIES}/{name}.{version}"
        lines += [f"link|{_LIBRARIES}/{name}|{real}", f"link|{_LIBRARIES}/{name}.1|{real}", f"file|{real}|"]
    cached = "/lib/x86_64-linux-gnu"
    lines += [
        f"cache|{name}.1|(libc6,x86-64) => {cached}/{name}.1|{_LIBRARIES}/{name}.{version}" for name in reversed(_NAMES)
    ]
    return "".join(f"{line}\n" for line in (*lines, "end"))


def _process(uid_map: str, pid: int, inner: int, name: str, *, first: bool) -> str:
    owner = uid_map.split()[1]
    lines = [f"{'init' if first else 'gpu'}|{pid}", f"comm|{name}", f"map|{_map(uid_map).rstrip()}"]
    status = {
        "Uid": "\t".join([owner] * 4),
        "NSpid": f"{pid}\t{inner}",
        "VmLck": "       0 kB",
        "VmSwap": "       0 kB",
        "Threads": "1" if first else "143",
        "CapEff": "000001fcfdfcffff" if owner == "0" else "000001ffffffffff",
    }
    lines += [f"status|{key}:\t{value}" for key, value in status.items()]
    rows = (("Limit", "Soft Limit", "Hard Limit", "Units"), *_LIMITS)
    lines += ["limit|{:<25} {:<20} {:<20} {:<10}".format(*row) for row in rows]
    return "".join(f"{line}\n" for line in lines)
