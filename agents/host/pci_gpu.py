"""The GPUs that the PCI bus shows, whoever drives them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import NotApplicableError, ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script

NVIDIA = "0x10de"
PASSED_THROUGH = "vfio-pci"

# Display controllers (class 0x03) and processing accelerators (0x12). `readlink` says nothing when there is no
# driver; `physfn` is there on the virtual functions of vGPU hosts, which are no GPUs of their own.
PCI_GPUS = Script(
    name="pci_gpus",
    text="""\
for d in /sys/bus/pci/devices/*; do
  class=
  [ -r "$d/class" ] && read -r class <"$d/class"
  case $class in 0x03*|0x12*) ;; *) continue ;; esac
  vendor=; device=; kind=physical
  [ -r "$d/vendor" ] && read -r vendor <"$d/vendor"
  [ -r "$d/device" ] && read -r device <"$d/device"
  [ -e "$d/physfn" ] && kind=virtual
  driver=$(readlink "$d/driver")
  echo "${d##*/} $vendor $device $class $kind ${driver##*/}"
done
""",
)


class PciGpu(Fact):
    """One display controller or accelerator on the bus."""

    bus_id: str  # "0000:41:00.0", as Linux writes it
    vendor: str  # "0x10de" is NVIDIA
    device: str
    pci_class: str
    virtual_function: bool
    driver: str  # the kernel driver bound to it; empty when none is
    evidence: Evidence

    @property
    def is_nvidia(self) -> bool:
        """A GPU of NVIDIA's: VGA (0x0300) or 3D controller (0x0302), and no virtual function."""
        return self.vendor == NVIDIA and self.pci_class[:6] in {"0x0300", "0x0302"} and not self.virtual_function


def pci_gpus(capture: Capture) -> tuple[PciGpu, ...]:
    """What `PCI_GPUS` printed.

    Raises:
        ParseError: a line of another form.
    """
    return tuple(_gpu(line) for line in capture.lines())


def nvidia_gpus(found: Iterable[PciGpu]) -> tuple[PciGpu, ...]:
    """Those of NVIDIA's that this host drives itself.

    Raises:
        NotApplicableError: there is none; the reason names what is there instead.
    """
    found = tuple(found)
    ours = tuple(gpu for gpu in found if gpu.is_nvidia)
    driven = tuple(gpu for gpu in ours if gpu.driver != PASSED_THROUGH)
    if driven:
        return driven
    if ours:
        named = ", ".join(gpu.bus_id for gpu in ours)
        raise NotApplicableError(f"every NVIDIA GPU is bound to vfio-pci and belongs to a virtual machine: {named}")
    raise NotApplicableError("; ".join(("no NVIDIA GPU on the PCI bus", *_others(found))))


def address(bus_id: str) -> tuple[int, ...]:
    """A bus id as numbers: equal whatever the width of the domain and the case, as in 0000:C1 and 00000000:c1."""
    return tuple(int(part, 16) for part in bus_id.replace(".", ":").split(":"))


def _others(found: tuple[PciGpu, ...]) -> list[str]:
    return [
        f"{_OUT_OF_SCOPE[gpu.vendor]} {gpu.bus_id} ({gpu.vendor[2:]}:{gpu.device[2:]}) is out of scope"
        for gpu in found
        if gpu.vendor in _OUT_OF_SCOPE and not gpu.virtual_function
    ]


def _gpu(line: Line) -> PciGpu:
    match = _LINE.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "bus id, vendor, device, class, physical or virtual, driver")
    bus_id, vendor, device, pci_class, kind, driver = match.groups()
    return PciGpu(
        bus_id=bus_id,
        vendor=vendor,
        device=device,
        pci_class=pci_class,
        virtual_function=kind == "virtual",
        driver=driver,
        evidence=line.evidence,
    )


_HEX = "0x[0-9a-f]"
_LINE = re.compile(
    rf"([0-9a-f]{{4,8}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7]) ({_HEX}{{4}}) ({_HEX}{{4}}) ({_HEX}{{6}})"
    r" (physical|virtual) ([\w.-]*)",
    re.ASCII,
)
_OUT_OF_SCOPE = {
    "0x1002": "AMD GPU",
    "0x8086": "Intel GPU",
    "0x1414": "the virtual GPU of Hyper-V or WSL",
    "0x1da3": "Habana accelerator",
}
