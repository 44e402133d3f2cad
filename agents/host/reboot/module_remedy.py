"""How a kernel gets its NVIDIA module, or how the host stays with the kernel that has one."""

from __future__ import annotations

from gapline.agents.host.kernel_version import series
from gapline.agents.host.reboot.fact import InstalledKernel, NextBoot
from gapline.orchestrator.model.finding import Remedy, Risk

_OLD_NAMES = {"5.13", "5.15", "5.19", "6.1", "6.2"}  # of the series that Proxmox VE shipped before it renamed them


def headers_package(version: str) -> str:
    """The package with the headers of that kernel."""
    if not version.endswith("-pve"):
        return f"linux-headers-{version}"
    return f"pve-headers-{version}" if series(version) in _OLD_NAMES else f"proxmox-headers-{version}"


def keep_running(fact: NextBoot) -> str:
    """The command that makes the running kernel the next one, too."""
    if fact.proxmox_tool or fact.running.endswith("-pve"):
        return f"proxmox-boot-tool kernel pin {fact.running}"
    return f"set GRUB_DEFAULT in /etc/default/grub to the id that /boot/grub/grub.cfg gives {fact.running}; update-grub"


def remedy_for(fact: NextBoot, kernel: InstalledKernel) -> Remedy:
    """What is missing comes first; pinning the running kernel is the way out where it has a module."""
    running = fact.kernel(fact.running)
    stay = running is not None and bool(running.modules) and running.version != kernel.version
    now = _build(fact, kernel)
    return Remedy(
        now=f"{now}. Until then stay with the running kernel: {keep_running(fact)}" if stay else now,
        lasting="Install the package of headers that follows the kernel (proxmox-default-headers, linux-headers-amd64) "
        "and the driver by DKMS; after every upgrade and before every reboot: dkms status.",
        undo="proxmox-boot-tool kernel unpin, if it was pinned"
        if stay
        else "Nothing to undo: a built module harms no other kernel.",
        cost="A build takes minutes and CPU time; nothing that runs is touched.",
        risk=Risk.R1,
        restarts="nothing before the reboot",
        verify_agent="host.next_boot",
    )


def _build(fact: NextBoot, kernel: InstalledKernel) -> str:
    version = kernel.version
    failure = fact.failure(version)
    if failure and kernel.headers:
        return (
            f"The source of {failure.name} {failure.version} does not compile with kernel {version}: install a newer "
            f"driver branch that supports it. The log: /var/lib/dkms/{failure.name}/{failure.version}/build/make.log"
        )
    if not fact.dkms:
        return (
            f"Install the driver by DKMS (with NVIDIA's installer: --dkms), with apt install {headers_package(version)}"
        )
    if not kernel.headers:
        return f"apt install {headers_package(version)} && dkms autoinstall -k {version}; dkms status"
    return f"dkms autoinstall -k {version}; dkms status"
