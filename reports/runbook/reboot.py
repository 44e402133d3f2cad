"""What goes before and after the one reboot of a host, by the way it boots.

Sources: proxmox-boot-tool(8) of pve-kernel-helper ("kernel add": a version is kept beside the automatic selection);
apt-mark(8).
"""

from __future__ import annotations

from gapline.reports.runbook.plan import NEXT_BOOT, HostPlan


def keep_kernel(plan: HostPlan) -> tuple[str, ...]:
    """Commands that keep the kernel that runs now, so that there is a way back."""
    if plan.proxmox or plan.managed_esps:
        return (
            'proxmox-boot-tool kernel add "$(uname -r)"',
            "proxmox-boot-tool refresh",
            "proxmox-boot-tool kernel list",
        )
    return ('apt-mark hold "linux-image-$(uname -r)"',)


def way_back(plan: HostPlan) -> str:
    """How to come back if the reboot goes wrong."""
    menu = {
        "grub": "choose the former kernel under GRUB's *Advanced options*",
        "systemd-boot": "choose the former kernel in systemd-boot's menu",
    }.get(plan.loader, "choose the former kernel in the boot menu (which loader it is was not seen)")
    return f"At the console {menu}; keep a way to the console (IPMI, iDRAC) at hand before you reboot."


def check(plan: HostPlan) -> tuple[str, ...]:
    """What must be well before the reboot: a command for the machine that has Gapline, or one for the host."""
    if plan.next_boot:
        return (f"gapline rerun {NEXT_BOOT} --target {plan.host.id}",)
    return ("dkms status",)
