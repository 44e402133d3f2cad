"""What kind of machine a host is: bare metal, a guest, WSL, or itself a container."""

from __future__ import annotations

import re
from enum import StrEnum

from gapline.agents.host.cpu.fact import Setting
from gapline.agents.host.cpu.processor import CPUINFO, processor
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import File, Glob, Source, Stat

_DMI = "/sys/class/dmi/id"
# Not the serial numbers and the UUID, which only root may read and nobody needs here.
_NAMES = ("sys_vendor", "product_name", "board_vendor", "board_name", "bios_vendor", "bios_version", "bios_date")
_CONTAINER, _XEN = "/run/systemd/container", "/proc/xen/capabilities"

SOURCES: dict[str, Source] = {
    "cpuinfo": CPUINFO,
    "dmi": Glob(" ".join(f"{_DMI}/{name}" for name in _NAMES)),
    "kernel": File("/proc/sys/kernel/osrelease"),
    "marks": Glob(f"{_CONTAINER} {_XEN}"),
    "nodes": Stat("/dev/dxg /.dockerenv /run/.containerenv"),
    "second": File("/proc/2/comm"),
}


class Kind(StrEnum):
    """What runs the kernel."""

    BARE = "bare metal"
    GUEST = "virtual machine"
    WSL = "WSL"
    UNKNOWN = "unknown"  # an architecture without a hypervisor flag, and firmware that says nothing


class Machine(Fact):
    """The kind, and on what that rests."""

    kind: Kind
    container: Setting | None  # this "host" is itself a container: its manager's name
    evidence: tuple[Evidence, ...]
    firmware: dict[str, str]  # DMI by name: "sys_vendor", "product_name", "bios_version"
    bios: Setting | None  # version and date of the firmware; the line is that of the version
    wsl_node: bool  # /dev/dxg, through which WSL reaches the GPU

    @property
    def model(self) -> str:
        """Vendor and product as the firmware names them; a hypervisor names itself there."""
        return " ".join(filter(None, (self.firmware.get("sys_vendor", ""), self.firmware.get("product_name", ""))))


def read(captures: Captures) -> Machine:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
    """
    dmi, marks, nodes = captures.have("dmi"), captures.have("marks"), captures.have("nodes")
    release = captures.need("kernel").first()
    firmware = _single(dmi)
    marked = _single(marks)
    found = {line.text.partition("|")[0] for line in nodes.lines()} if nodes else set()
    kind, evidence = _kind(captures.need("cpuinfo"), firmware, marked)
    wsl = "microsoft" in release.text.lower()
    return Machine(
        kind=Kind.WSL if wsl else kind,
        container=None if _kernel_threads(captures) else marked.get(_CONTAINER) or _by_node(nodes, found),
        evidence=(release.evidence,) if wsl else evidence,
        firmware={path.rpartition("/")[2]: one.value for path, one in firmware.items()},
        bios=_bios(firmware),
        wsl_node="/dev/dxg" in found,
    )


def _kind(
    cpuinfo: Capture, firmware: dict[str, Setting], marked: dict[str, Setting]
) -> tuple[Kind, tuple[Evidence, ...]]:
    """On x86 the processor's flag decides, whatever the firmware calls itself: clouds lend bare metal, too.

    Xen's first domain has the flag and drives the hardware all the same (control_d).
    """
    cpu = processor(cpuinfo)
    said = tuple(one.evidence for path, one in firmware.items() if path.endswith(("/sys_vendor", "/product_name")))
    xen = marked.get(_XEN)
    if cpu.virtual and not (xen and "control_d" in xen.value):
        return Kind.GUEST, (cpu.virtual, *said)
    if cpu.vendor:
        return Kind.BARE, (*((xen.evidence,) if xen else ()), *said, cpuinfo.first().evidence)
    if not said:
        return Kind.UNKNOWN, (cpuinfo.first().evidence,)
    model = " ".join(one.value for path, one in firmware.items() if path.endswith(("/sys_vendor", "/product_name")))
    guest = re.search(r"QEMU|KVM|VMware|Virtual Machine|VirtualBox|Xen|Parallels|Amazon EC2(?!.*\.metal)", model)
    return (Kind.GUEST if guest else Kind.BARE), said


def _bios(firmware: dict[str, Setting]) -> Setting | None:
    version, date = (firmware.get(f"{_DMI}/bios_{name}") for name in ("version", "date"))
    if version is None or not version.value:
        return None
    told = f"{version.value} of {date.value}" if date and date.value else version.value
    return Setting(value=told, evidence=version.evidence)


def _kernel_threads(captures: Captures) -> bool:
    """Whether process 2 is the one that starts kernel threads: then this is the kernel's first PID name space.

    A virtual machine whose disk was made from a container's image has /.dockerenv and is no container (seen so).
    """
    second = captures.have("second")
    return second is not None and second.first().text == "kthreadd"


def _by_node(nodes: Capture | None, found: set[str]) -> Setting | None:
    for path, manager in (("/.dockerenv", "docker"), ("/run/.containerenv", "podman")):
        if nodes and path in found:
            line = next(line for line in nodes.lines() if line.text.startswith(f"{path}|"))
            return Setting(value=manager, evidence=line.evidence)
    return None


def _single(capture: Capture | None) -> dict[str, Setting]:
    values: dict[str, Setting] = {}
    for path, (line, *_) in capture.files().items() if capture else ():
        if not re.fullmatch(r"[^\x00-\x1f\x7f]{0,120}", line.text):
            raise ParseError(line.evidence, "one printable line")
        values[path] = Setting(value=line.text.strip(), evidence=line.evidence)
    return values
