"""The virtual machine's disk: built from Debian packages, booted once, and kept by a hash of everything it is made of.

No root file system is downloaded. The packages come from the distribution that apt is configured for on this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.lab.lxc.container import LabContainer
from tests.lab.lxc.root import build_root
from tests.lab.lxc.stand_in import write_driver
from tests.lab.vm import kernel

HERE = Path(__file__).parent
PROGRAMS = (HERE.parent / "pve/lxc-config.pl", HERE.parent / "pve/show-driver.sh")
_ROOTS = HERE.parent / "lxc"
INPUTS = (
    HERE / "image.py", HERE / "kernel.py", HERE / "stand_in.c",
    _ROOTS / "container.py", _ROOTS / "root.py", _ROOTS / "stand_in.py",
)  # fmt: skip
HOSTNAME = "pve-vm"
CONTAINERS = (LabContainer(name="129"), LabContainer(name="130", unprivileged=True))  # configured at the first boot
PACKAGES = (
    "systemd-sysv", "udev", "kmod", "openssh-server", "iproute2", "procps", "lxc", "apparmor", "uidmap",
    "busybox-static", "pciutils", "perl-base", "patch",
)  # fmt: skip
_SIZE = "1200M"
# What slows a boot in software emulation, or waits for a network or a console that is not there.
_MASKED = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "e2scrub_reap.service",
    "fstrim.timer", "getty.target", "getty-static.service", "lxc-net.service", "lxc-monitord.service", "lxc.service",
    "systemd-timesyncd.service", "systemd-logind.service", "networking.service", "systemd-update-utmp.service",
    "systemd-user-sessions.service",
)  # fmt: skip
_UNITS = ("lab-network", "nvidia-stand-in", "pve-guests")


@dataclass(frozen=True, slots=True)
class Image:
    """A finished image in its folder. Machines run on overlays over `disk` and never write to it."""

    folder: Path

    @property
    def disk(self) -> Path:
        """What machines start from: booted once, so that its caches are filled."""
        return self.folder / "golden.qcow2"

    @property
    def base(self) -> Path:
        """The file system as it was built; `disk` lies over it."""
        return self.folder / "root.img"

    @property
    def kernel(self) -> Path:
        """For QEMU to boot directly."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """Loads the disk's driver."""
        return self.folder / "initrd"

    @property
    def identity(self) -> Path:
        """The private key that root's account accepts."""
        return self.folder / "id_ed25519"

    @property
    def host_key(self) -> Path:
        """The public key that the machine will show."""
        return self.folder / "host_key.pub"


def cache() -> Path:
    """Where images are kept between runs."""
    given = os.environ.get("GAPLINE_LAB_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "gapline-lab"


def content_key(package: kernel.KernelPackage) -> str:
    """A hash of the image's inputs: every file it is made by and from, and its kernel."""
    guest = (path for path in sorted((HERE / "guest").rglob("*")) if path.is_file())
    digest = sha256(repr(package).encode())
    for path in (*INPUTS, *PROGRAMS, *guest):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def build(package: kernel.KernelPackage, folder: Path) -> Image:
    """Everything but the golden overlay, which takes a first boot."""
    image, root, unpacked = Image(folder), folder / "root", folder / "kernel"
    folder.mkdir(parents=True)
    for key in (image.identity, image.host_key.with_suffix("")):
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(key))
    kernel.unpack(package, unpacked)
    _install_packages(root)
    kernel.install_modules(package, unpacked, root)
    kernel.build_initrd(package, unpacked, HERE / "guest/usr/local/sbin/initrd-init", image.initrd)
    shutil.copy(unpacked / f"boot/vmlinuz-{package.release}", image.kernel)
    _configure(root, image)
    _add_containers(root)
    _run("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal,^metadata_csum", "-m", "0", "-d", str(root),
         str(image.base), _SIZE)  # fmt: skip
    shutil.rmtree(root)
    shutil.rmtree(unpacked)
    return image


def _install_packages(root: Path) -> None:
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), flags=re.MULTILINE)
    assert codename is not None
    targets = ("Created-By: Packages", "Origin: Debian")
    listed = subprocess.run(
        ("apt-get", "indextargets", "--format", "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", *targets),
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    sources = [line for line in dict.fromkeys(listed.splitlines()) if f" {codename.group(1)}" in line]
    _run(
        "mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--format=directory",
        '--aptopt=APT::Install-Recommends "false"', "--dpkgopt=force-unsafe-io",
        "--dpkgopt=path-exclude=/usr/share/{man,doc,locale,info}/*", f"--include={','.join(PACKAGES)}",
        codename.group(1), str(root), *sources,
    )  # fmt: skip


def _configure(root: Path, image: Image) -> None:
    shutil.copytree(HERE / "guest", root, dirs_exist_ok=True, symlinks=True)
    for program in PROGRAMS:
        shutil.copy(program, root / "usr/local/sbin")
        (root / "usr/local/sbin" / program.name).chmod(0o755)
    _run("gcc", "-O2", "-static", "-o", str(root / "usr/local/sbin/nvidia-stand-in"), str(HERE / "stand_in.c"))
    write_driver(root / "usr/local/share/driver")
    (root / "etc/hostname").write_text(f"{HOSTNAME}\n")
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost {HOSTNAME}\n")
    (root / "etc/fstab").write_text("")
    (root / "etc/machine-id").write_text("")
    for file in ("etc/subuid", "etc/subgid"):
        (root / file).write_text("root:100000:65536\n")
    _open_the_door(root, image)
    units = root / "etc/systemd/system"
    for unit in _MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    (units / "default.target").unlink(missing_ok=True)
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    for unit in _UNITS:
        (units / f"multi-user.target.wants/{unit}.service").symlink_to(f"/etc/systemd/system/{unit}.service")


def _open_the_door(root: Path, image: Image) -> None:
    """Root logs in with the image's own key; the host key is the image's, so that it is known beforehand."""
    for old in (root / "etc/ssh").glob("ssh_host_*"):
        old.unlink()
    shutil.copy(image.host_key.with_suffix(""), root / "etc/ssh/ssh_host_ed25519_key")
    (root / "etc/ssh/sshd_config").write_text(
        "HostKey /etc/ssh/ssh_host_ed25519_key\nPermitRootLogin prohibit-password\nUsePAM no\nUseDNS no\n"
    )
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    shutil.copy(image.identity.with_suffix(".pub"), root / "root/.ssh/authorized_keys")
    shadow = root / "etc/shadow"  # without PAM, sshd refuses an account whose password field says "locked"
    shadow.write_text(re.sub(r"^root:[^:]*:", "root:*:", shadow.read_text(), flags=re.MULTILINE))


def _add_containers(root: Path) -> None:
    node = root / "etc/pve/nodes" / HOSTNAME / "lxc"
    node.mkdir(parents=True)
    (root / "etc/pve/lxc").symlink_to(f"nodes/{HOSTNAME}/lxc")
    for container in CONTAINERS:
        base = root / "var/lib/lxc" / container.name
        base.mkdir(parents=True)
        build_root(container, base / "rootfs")
    for folder in (root / "var/lib/lxc", root / "var/lib"):
        folder.chmod(0o755)  # the mapped root user of an unprivileged container has to get through


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
