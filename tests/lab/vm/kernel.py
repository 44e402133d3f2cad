"""Debian's own kernel for the virtual machine: found and fetched through apt, cut down to the modules it needs."""

from __future__ import annotations

import gzip
import lzma
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# What the disk, the network, systemd and the stand-in driver need; the rest that matters is built in.
_BOOT_MODULES = ("virtio_pci", "virtio_blk", "ext4", "virtio_net")  # eth0 is there before systemd starts
_MODULES = (*_BOOT_MODULES, "virtio_rng", "autofs4", "fuse", "cuse", "overlay")


@dataclass(frozen=True, slots=True)
class KernelPackage:
    """The newest kernel package of the configured distribution."""

    name: str  # linux-image-6.1.0-57-amd64
    version: str

    @property
    def release(self) -> str:
        """As `uname -r` says."""
        return self.name.removeprefix("linux-image-")


def newest() -> KernelPackage:
    """What the distribution's meta package stands for today."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    name = _field(f"linux-image-{machine}", "Depends").split(" ", 1)[0]
    return KernelPackage(name, _field(name, "Version"))


def unpack(package: KernelPackage, folder: Path) -> None:
    """Fetch the package and unpack it into `folder`, with its modules' dependencies worked out."""
    folder.mkdir()
    _run("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package.name, cwd=folder)
    _run("dpkg", "-x", str(next(folder.glob("*.deb"))), str(folder))
    _run("depmod", "-b", str(folder), package.release)


def install_modules(package: KernelPackage, unpacked: Path, root: Path) -> None:
    """Copy the modules that are needed, and theirs, into the root file system."""
    for module in _with_dependencies(package, unpacked, _MODULES):
        target = root / module.relative_to(unpacked)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(module, target)
    for listing in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        relative = Path("lib/modules") / package.release / listing
        shutil.copy(unpacked / relative, root / relative)
    _run("depmod", "-b", str(root), package.release)


def build_initrd(package: KernelPackage, unpacked: Path, init: Path, target: Path) -> None:
    """A RAM disk of busybox, `init` and the boot modules, in the order in which they load."""
    tree = target.with_suffix(".tree")
    for folder in ("bin", "dev", "root", "modules"):
        (tree / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", tree / "bin/busybox")
    shutil.copy(init, tree / "init")
    order = list(_with_dependencies(package, unpacked, _BOOT_MODULES))
    for module in order:
        (tree / "modules" / module.name.removesuffix(".xz")).write_bytes(_plain(module))
    (tree / "modules.order").write_text("".join(f"{module.name.removesuffix('.xz')}\n" for module in order))
    names = "".join(f"{path.relative_to(tree)}\n" for path in sorted(tree.rglob("*")))
    packed = subprocess.run(
        ("/bin/busybox", "cpio", "-o", "-H", "newc"), cwd=tree, input=names.encode(), capture_output=True, check=True
    )
    target.write_bytes(gzip.compress(packed.stdout, compresslevel=1))
    shutil.rmtree(tree)


def _with_dependencies(package: KernelPackage, unpacked: Path, names: tuple[str, ...]) -> Iterator[Path]:
    seen: set[Path] = set()
    for name in names:
        listing = _run("modprobe", "-d", str(unpacked), "-S", package.release, "--show-depends", name)
        for line in listing.splitlines():
            kind, _, path = line.strip().partition(" ")
            if kind == "insmod" and Path(path) not in seen:
                seen.add(Path(path))
                yield Path(path)


def _plain(module: Path) -> bytes:
    content = module.read_bytes()
    return lzma.decompress(content) if module.suffix == ".xz" else content


def _field(package: str, name: str) -> str:
    shown = _run("apt-cache", "show", "--no-all-versions", package)
    return next(line.partition(": ")[2] for line in shown.splitlines() if line.startswith(f"{name}: "))


def _run(*argv: str, cwd: Path | None = None) -> str:
    return subprocess.run(argv, check=True, cwd=cwd, stdout=subprocess.PIPE, text=True).stdout
