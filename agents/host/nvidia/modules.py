"""Judgements on the kernel modules: loaded, not in each other's way, and the same as on disk."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.nvidia.fact import InstalledModule, NvidiaDriver
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

_VERIFY = "host.nvidia_driver"
_LOAD_AT_BOOT = "List nvidia and nvidia_uvm in /etc/modules-load.d/nvidia.conf, so that both are loaded at boot."

CODES = (
    Code(
        code="nvidia.module_missing",
        title="The NVIDIA kernel module is not loaded",
        meaning="Without nvidia no GPU works; without nvidia_uvm no CUDA program does, although nvidia-smi works. On "
        "the host a root process or the setuid nvidia-modprobe can load them on demand; a container cannot.",
    ),
    Code(
        code="nvidia.nouveau_loaded",
        title="nouveau is loaded",
        meaning="nouveau and the NVIDIA driver cannot hold the same GPU; whichever bound first keeps it.",
    ),
    Code(
        code="nvidia.loaded_not_installed",
        title="Another driver version is loaded than the one on disk",
        meaning="The packages were upgraded and the old module still runs. New processes load the new user-space "
        "library, which refuses a module of another version.",
    ),
)


def module_findings(fact: NvidiaDriver) -> tuple[Finding, ...]:
    """What is wrong with the modules themselves."""
    return (*_missing(fact), *_nouveau(fact), *_outdated(fact))


def _missing(fact: NvidiaDriver) -> Iterator[Finding]:
    if fact.loaded is None:
        yield _nvidia_missing(fact)
    elif "nvidia-uvm" not in fact.majors:
        yield _uvm_missing(fact)


def _nvidia_missing(fact: NvidiaDriver) -> Finding:
    installed = fact.installed
    absent = isinstance(installed, InstalledModule) and installed.version is None
    seen = (installed.evidence,) if isinstance(installed, InstalledModule) else ()
    build = "dkms status; dkms autoinstall -k $(uname -r)   # needs the headers of the running kernel"
    return Finding(
        code="nvidia.module_missing",
        subject="nvidia",
        severity=Severity.CRITICAL,
        title="The NVIDIA kernel module is not loaded"
        + (", and there is none for the running kernel" if absent else ""),
        observed=f"no /proc/driver/nvidia/version, with {len(fact.pci)} NVIDIA GPU(s) on the bus",
        expected="module nvidia loaded",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(*(gpu.evidence for gpu in fact.pci), *seen),
        remedy=Remedy(
            now=f"{build}; modprobe nvidia" if absent else "modprobe nvidia; dmesg | grep NVRM   # if it fails",
            lasting="Install the headers package that follows the kernel (proxmox-default-headers or linux-headers-"
            f"amd64), so that DKMS builds for every new kernel before it boots. {_LOAD_AT_BOOT}",
            undo="modprobe -r nvidia",
            cost="A build takes minutes and CPU time; loading interrupts nobody, since no GPU is in use.",
            risk=Risk.R1,
            restarts="containers that were started without the nodes",
            verify_agent=_VERIFY,
        ),
    )


def _uvm_missing(fact: NvidiaDriver) -> Finding:
    return Finding(
        code="nvidia.module_missing",
        subject="nvidia_uvm",
        severity=Severity.HIGH,
        title="nvidia_uvm is not loaded: CUDA fails in every container, although nvidia-smi works",
        observed="no nvidia-uvm among the character devices",
        expected="a line 'nvidia-uvm' in /proc/devices",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=tuple(major.evidence for major in fact.majors.values()),
        remedy=Remedy(
            now="nvidia-modprobe -c0 -u   # loads nvidia_uvm and creates its nodes",
            lasting=f"{_LOAD_AT_BOOT} Create the nodes before the containers start: a oneshot unit with "
            "Before=pve-guests.service (Proxmox VE) or Before=lxc.service that runs nvidia-modprobe -c0 -u.",
            undo="modprobe -r nvidia_uvm",
            cost="none",
            risk=Risk.R1,
            restarts="containers that were started without the nodes",
            verify_agent=_VERIFY,
        ),
    )


def _nouveau(fact: NvidiaDriver) -> Iterator[Finding]:
    module = next((module for module in fact.modules if module.name == "nouveau"), None)
    if module is None:
        return
    held = tuple(gpu for gpu in fact.pci if gpu.driver == "nouveau")
    yield Finding(
        code="nvidia.nouveau_loaded",
        subject="nouveau",
        severity=Severity.CRITICAL if held else Severity.LOW,
        base_severity=Severity.CRITICAL,
        severity_reason="" if held else "critical → low: it is loaded but holds none of the NVIDIA GPUs",
        title="nouveau holds the GPU, so the NVIDIA driver cannot" if held else "nouveau is loaded, but holds no GPU",
        observed=f"nouveau drives {', '.join(gpu.bus_id for gpu in held) or 'nothing'}",
        expected="nouveau not loaded",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(module.evidence, *(gpu.evidence for gpu in held)),
        remedy=Remedy(
            now="modprobe -r nouveau && modprobe nvidia   # works only while no console uses nouveau",
            lasting="printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' > /etc/modprobe.d/nouveau.conf; "
            "update-initramfs -u -k all; reboot",
            undo="Remove /etc/modprobe.d/nouveau.conf, update-initramfs -u -k all, reboot.",
            cost="A reboot where the module cannot be removed; the console of that GPU is then plain VGA.",
            risk=Risk.R3,
            restarts="the host, unless nouveau can be removed",
            verify_agent=_VERIFY,
        ),
    )


def _outdated(fact: NvidiaDriver) -> Iterator[Finding]:
    loaded, installed = fact.loaded, fact.installed
    if loaded is None or not isinstance(installed, InstalledModule) or installed.version == loaded.version:
        return
    on_disk = installed.version or "no module for the running kernel"
    yield Finding(
        code="nvidia.loaded_not_installed",
        subject="nvidia",
        severity=Severity.MEDIUM,
        title=f"Driver {loaded.version} runs, but on disk is {on_disk}",
        observed=f"loaded {loaded.version}, on disk {on_disk}",
        expected="the same version loaded and on disk",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.INFERRED,
        evidence=(loaded.evidence, installed.evidence),
        settled_by="nvidia-smi on the host: 'Driver/library version mismatch' when the libraries were upgraded, too",
        remedy=Remedy(
            now="Stop all GPU users, then modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia && modprobe nvidia"
            if installed.version
            else "dkms autoinstall -k $(uname -r)   # before the next reboot",
            lasting="Upgrade the driver together with a reboot, and hold its packages in between: apt-mark hold.",
            undo=f"Install {loaded.version} again.",
            cost="All GPU work stops while the module is exchanged.",
            risk=Risk.R3,
            restarts="every GPU container; the libraries in them must get the same version",
            verify_agent=_VERIFY,
        ),
    )
