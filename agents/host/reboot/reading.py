"""From captures to what stands ready for the next boot."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.host.boot_parameters import boot_parameters
from gapline.agents.host.nvidia.reading import loaded_driver
from gapline.agents.host.pci_gpu import nvidia_gpus, pci_gpus
from gapline.agents.host.reboot.choice import Rows, choice
from gapline.agents.host.reboot.fact import (
    BuildFailure,
    DkmsDriver,
    InstalledKernel,
    NextBoot,
    NodeMaker,
    Nodes,
    Package,
)
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError

_IN_TIME = ("/udev/rules.d/", "/etc/pve/lxc/", "/modprobe.d/")
_FIELDS = {"kernel": 3, "module": 2, "dkms": 2, "built": 3, "failed": 4, "pin": 2, "chosen": 2, "default": 1}
_FIELDS |= {"menu": 4, "boots": 1, "lxc": 1, "before": 1, "maker": 2, "package": 2, "denied": 1, "looked": 1, "end": 0}


def read(captures: Captures) -> NextBoot:
    """The fact.

    Raises:
        CollectError: a part could not be read.
        ParseError: a part has an unknown form.
        NotApplicableError: the host drives no NVIDIA GPU.
    """
    nvidia_gpus(pci_gpus(captures.need("pci")))
    running = captures.need("kernel").first()
    if re.fullmatch(r"[\w.+~-]{1,80}", running.text, re.ASCII) is None:
        raise ParseError(running.evidence, "the release of a kernel")
    version = captures.have("version")
    loaded = loaded_driver(version) if version else None
    boot = boot_parameters(captures.need("boot_parameters"))
    rows, last = _rows(captures.need("next_boot"))
    kernels = tuple(_kernels(rows))
    return NextBoot(
        running=running.text,
        loaded=loaded.version if loaded else None,
        loaded_evidence=loaded.evidence if loaded else None,
        kernels=kernels,
        choice=choice(rows, boot, kernels),
        dkms=tuple(_dkms(rows)),
        failures=tuple(_failures(rows)),
        containers="lxc" in rows,
        makers=tuple(_makers(rows)),
        packages=tuple(
            Package(name=name, held=want == "hold", evidence=at.evidence)
            for (name, want), at in rows.get("package", ())
        ),
        proxmox_tool=boot.managed_esps,
        unread=tuple(path for (path,), _ in rows.get("denied", ())),
        looked=next((at.evidence for _, at in rows.get("looked", ())), last.evidence),
    )


def _rows(capture: Capture) -> tuple[Rows, Line]:
    rows: dict[str, list[tuple[list[str], Line]]] = {}
    line = capture.first()
    for line in capture.lines():
        kind, *values = line.text.split("|")
        if len(values) != _FIELDS.get(kind):
            raise ParseError(line.evidence, "something about the next boot")
        rows.setdefault(kind, []).append((values, line))
    if line.text != "end":
        raise ParseError(line.evidence, "the end of what the next boot will find")
    return rows, line


def _kernels(rows: Rows) -> Iterator[InstalledKernel]:
    for (version, listed, headers), at in rows.get("kernel", ()):
        modules = [(path, line) for (kernel, path), line in rows.get("module", ()) if kernel == version]
        yield InstalledKernel(
            version=version,
            listed=listed == "yes",
            headers=headers == "yes",
            modules=tuple(path for path, _ in modules),
            evidence=at.evidence,
            module_evidence=tuple(line.evidence for _, line in modules),
        )


def _dkms(rows: Rows) -> Iterator[DkmsDriver]:
    for (name, version), at in rows.get("dkms", ()):
        built = [kernel for (one, other, kernel), _ in rows.get("built", ()) if (one, other) == (name, version)]
        yield DkmsDriver(name=name, version=version, built=tuple(built), evidence=at.evidence)


def _failures(rows: Rows) -> Iterator[BuildFailure]:
    for (name, version, kernel, said), at in rows.get("failed", ()):
        yield BuildFailure(name=name, version=version, kernel=kernel, said=said.strip(), evidence=at.evidence)


def _makers(rows: Rows) -> Iterator[NodeMaker]:
    ordered = {file for (file,), _ in rows.get("before", ())}
    for (file, command), at in rows.get("maker", ()):
        in_time = file in ordered or any(part in file for part in _IN_TIME)
        yield NodeMaker(file=file, command=command, makes=_makes(command), in_time=in_time, evidence=at.evidence)


def _makes(command: str) -> tuple[Nodes, ...]:
    """nvidia-modprobe makes the uvm nodes with -u only; those who start containers for NVIDIA make all."""
    if command.startswith(("nvidia-ctk", "nvidia-container-cli")):
        return Nodes.GPU, Nodes.UVM
    if command == "create-uvm-dev-node" or "nvidia-uvm" in command:
        return (Nodes.UVM,)
    if command.startswith("nvidia-modprobe") and re.search(r" -[a-z0-9]*u\b| --unified-memory| -u", command):
        return Nodes.GPU, Nodes.UVM
    if command.startswith("nvidia-persistenced") and "--uvm" in command:
        return Nodes.GPU, Nodes.UVM
    return (Nodes.GPU,)
