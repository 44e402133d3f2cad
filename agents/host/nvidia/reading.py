"""From captures to the NVIDIA driver's fact."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.char_major import char_majors
from gapline.agents.device_node import device_nodes
from gapline.agents.host.nvidia.fabric import SERVICES, SWITCHES
from gapline.agents.host.nvidia.fact import (
    DriverGpu,
    Flavour,
    InstalledModule,
    KernelModule,
    LoadedDriver,
    NvidiaDriver,
)
from gapline.agents.host.nvidia.libraries import LIBRARIES, host_libraries
from gapline.agents.host.nvidia.parameters import PARAMETERS, module_parameters
from gapline.agents.host.pci_gpu import PCI_GPUS, nvidia_gpus, pci_gpus
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Source, Stat

SOURCES: dict[str, Source] = {
    "pci": PCI_GPUS,
    "version": File("/proc/driver/nvidia/version"),
    "modules": File("/proc/modules"),
    "devices": File("/proc/devices"),
    "nodes": Stat("/dev/nvidia* /dev/nvidia-caps/*"),
    "gpus": Glob("/proc/driver/nvidia/gpus/*/information"),
    "installed": Command(("modinfo", "-F", "version", "nvidia"), package="kmod"),
    "libraries": LIBRARIES,
    "switches": SWITCHES,
    "services": SERVICES,
    "parameters": PARAMETERS,
}


def read(captures: Captures) -> NvidiaDriver:
    """The fact.

    Raises:
        CollectError: a part that every judgement needs could not be read.
        ParseError: a part has an unknown form.
        NotApplicableError: the host drives no NVIDIA GPU.
    """
    version = captures.have("version")
    nodes = captures.have("nodes")
    gpus = captures.have("gpus")
    modules = captures.have("modules")  # a kernel built without loadable modules has no such file
    libraries, parameters = captures.have("libraries"), captures.have("parameters")
    switches, services = captures.have("switches"), captures.have("services")
    return NvidiaDriver(
        pci=nvidia_gpus(pci_gpus(captures.need("pci"))),
        loaded=loaded_driver(version) if version else None,
        installed=_installed(captures["installed"]),
        modules=tuple(_modules(modules)) if modules else (),
        char_majors=char_majors(captures.need("devices")),
        nodes=device_nodes(nodes) if nodes else (),
        gpus=tuple(_gpu(lines) for lines in gpus.files().values()) if gpus else (),
        libraries=tuple(host_libraries(libraries)) if libraries else (),
        switches=tuple(line.evidence for line in switches.lines()) if switches else (),
        services=tuple(_running(services)) if services else (),
        parameters=tuple(module_parameters(parameters)) if parameters else (),
    )


def loaded_driver(capture: Capture) -> LoadedDriver:
    """What /proc/driver/nvidia/version says.

    Raises:
        ParseError: another form.
    """
    line = capture.first()
    match = _VERSION.match(line.text)
    if match is None:
        raise ParseError(line.evidence, "'NVRM version: NVIDIA UNIX … Kernel Module …  <version>'")
    flavour = Flavour.OPEN if match[1] else Flavour.PROPRIETARY
    return LoadedDriver(version=match[2], flavour=flavour, evidence=line.evidence)


def _modules(capture: Capture) -> Iterator[KernelModule]:
    for line in capture.lines():
        name, _, rest = line.text.partition(" ")
        if not rest[:1].isdigit():
            raise ParseError(line.evidence, "a module's name and size")
        if name.startswith(("nvidia", "nouveau")):
            yield KernelModule(name=name, evidence=line.evidence)


def _running(capture: Capture) -> Iterator[str]:
    """A service without processes has an empty file, which does not appear."""
    yield from dict.fromkeys(path.split("/")[-2].removesuffix(".service") for path in capture.files())


def _installed(capture: Capture) -> InstalledModule | Problem:
    """`modinfo` fails with "not found" when the running kernel has no such module; that is an answer, too."""
    if capture.problem is None:
        line = capture.first()
        if _NUMBER.fullmatch(line.text) is None:
            raise ParseError(line.evidence, "a driver version")
        return InstalledModule(version=line.text, evidence=line.evidence)
    if capture.problem.kind is ProblemKind.FAILED and "not found" in capture.error():
        said = Evidence(target=capture.target, source=capture.shown, line=None, text=capture.error()[:200])
        return InstalledModule(version=None, evidence=said)
    return capture.problem


def _gpu(lines: tuple[Line, ...]) -> DriverGpu:
    values = {name.strip(): (value.strip(), line) for line in lines for name, _, value in (line.text.partition(":"),)}
    bus_id, line = values.get("Bus Location", ("", lines[0]))
    minor, _ = values.get("Device Minor", ("", line))
    if _BUS_ID.fullmatch(bus_id) is None:
        raise ParseError(line.evidence, "'Bus Location:' with a PCI address")
    return DriverGpu(
        bus_id=bus_id.lower(),
        model=values.get("Model", ("", line))[0],
        minor=int(minor) if _MINOR.fullmatch(minor) else None,
        excluded=values.get("GPU Excluded", ("No", line))[0] == "Yes",
        evidence=values.get("Device Minor", ("", line))[1].evidence,
    )


_NUMBER = re.compile(r"[0-9]{2,4}(\.[0-9]{1,4}){1,3}", re.ASCII)
_VERSION = re.compile(
    rf"NVRM version: NVIDIA UNIX (Open )?(?:\S+ )?Kernel Module (?:for \S+ )? *({_NUMBER.pattern})(?:\s|$)", re.ASCII
)
_BUS_ID = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]", re.ASCII)
_MINOR = re.compile(r"[0-9]{1,5}", re.ASCII)
