"""The driver's user-space libraries on the host, set against the loaded module."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.host.nvidia.fact import HostLibrary, LoadedDriver, NvidiaDriver
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.source import Stat

# Where Debian, Ubuntu, Red Hat and NVIDIA's own installer put 64-bit libraries.
_PLACES = ("x86_64-linux-gnu", "x86_64-linux-gnu/nvidia/*", "aarch64-linux-gnu", "aarch64-linux-gnu/nvidia/*")
LIBRARIES = Stat(" ".join(f"/usr/{place}/libnvidia-ml.so.*" for place in (*(f"lib/{one}" for one in _PLACES), "lib64")))

CODES = (
    Code(
        code="nvidia.library_mismatch",
        title="The host's libraries are of another version than the loaded module",
        meaning="The module answers libraries of its own version only ('Driver/library version mismatch', 'API "
        "mismatch'). Programs on the host fail, nvidia-smi among them, and so does what is started with the "
        "host's libraries; containers with the old libraries go on.",
    ),
    Code(
        code="nvidia.several_drivers",
        title="Libraries of several driver versions are installed",
        meaning="A package and NVIDIA's own installer, or two packages, were mixed. Which a program gets depends on "
        "the linker's cache, and the next upgrade of either breaks the other.",
    ),
)


def host_libraries(capture: Capture) -> Iterator[HostLibrary]:
    """The files that carry a version in their names; links such as libnvidia-ml.so.1 do not."""
    for line in capture.lines():
        match = _FILE.match(line.text)
        if match:
            yield HostLibrary(path=match[1], version=match[2], evidence=line.evidence)


_FILE = re.compile(r"(/[^|]{1,200}/libnvidia-ml\.so\.([0-9]{2,4}(?:\.[0-9]{1,4}){1,3}))\|regular", re.ASCII)


def library_findings(fact: NvidiaDriver) -> Iterator[Finding]:
    """A host without libraries, whose containers bring their own, is fine."""
    loaded = fact.loaded
    versions = {library.version for library in fact.libraries}
    if loaded is None or not versions:
        return
    if loaded.version not in versions:
        yield _mismatch(fact, loaded, " and ".join(sorted(versions)))
    elif len(versions) > 1:
        yield _several(fact, loaded)


def _mismatch(fact: NvidiaDriver, loaded: LoadedDriver, versions: str) -> Finding:
    return Finding(
        code="nvidia.library_mismatch",
        subject="nvidia",
        severity=Severity.HIGH,
        title=f"Driver {loaded.version} is loaded, and the host's libraries are {versions}",
        observed=", ".join(library.path for library in fact.libraries),
        expected=f"libraries of version {loaded.version}",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(loaded.evidence, *(library.evidence for library in fact.libraries)),
        remedy=Remedy(
            now="Stop all GPU users, then modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia && modprobe nvidia "
            f"if the module on disk is {versions} (modinfo -F version nvidia); else reboot.",
            lasting="Upgrade the driver together with a reboot, and hold its packages in between: apt-mark hold.",
            undo=f"Install the libraries of {loaded.version} again.",
            cost="All GPU work stops while the module is exchanged.",
            risk=Risk.R3,
            restarts="every GPU container; the libraries in them must get the same version",
            verify_agent="host.nvidia_driver",
        ),
    )


def _several(fact: NvidiaDriver, loaded: LoadedDriver) -> Finding:
    others = tuple(library for library in fact.libraries if library.version != loaded.version)
    return Finding(
        code="nvidia.several_drivers",
        subject="nvidia",
        severity=Severity.LOW,
        title=f"Beside {loaded.version} there are libraries of {' and '.join(sorted({one.version for one in others}))}",
        observed=", ".join(library.path for library in fact.libraries),
        expected="one version",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(library.evidence for library in fact.libraries),
        settled_by="nvidia-smi, and ldconfig -p | grep libnvidia-ml",
        remedy=Remedy(
            now="Find out where they come from: dpkg -S " + " ".join(library.path for library in fact.libraries),
            lasting="Remove one of the two: nvidia-uninstall for NVIDIA's installer, apt purge for packages; ldconfig.",
            undo="Install it again.",
            cost="GPU work stops if the wrong one is removed; do it when the host can be rebooted.",
            risk=Risk.R3,
            restarts="nothing, if the right one is removed",
            verify_agent="host.nvidia_driver",
        ),
    )
