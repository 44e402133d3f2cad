"""Where a lasting kernel parameter belongs on this host, and what puts it into force."""

from __future__ import annotations

from gapline.agents.host.boot_parameters import BootParameters

GRUB_FILES, ONE_LINE_FILE = "/etc/default/grub", "/etc/kernel/cmdline"
_REFRESH = "proxmox-boot-tool refresh"


def reads(loader: str, file: str) -> bool:
    """Whether that boot loader's configuration is made from the file; an unknown one may read any."""
    if loader == "grub":
        return file.startswith(GRUB_FILES)
    return loader != "systemd-boot" or file == ONE_LINE_FILE


def where(boot: BootParameters) -> str:
    """In which file parameters are written, and the command that follows, for people to read.

    On hosts whose ESPs proxmox-boot-tool keeps, its own command is right for both loaders; update-grub calls it.
    """
    grub = f"GRUB_CMDLINE_LINUX_DEFAULT in {GRUB_FILES}, then {_REFRESH if boot.managed_esps else 'update-grub'}"
    line = f"the one line of {ONE_LINE_FILE}, then {_REFRESH if boot.managed_esps else 'kernel-install add-all'}"
    match boot.loader:
        case "grub":
            return grub
        case "systemd-boot":
            return line
        case _:
            return f"with GRUB {grub}; with systemd-boot {line}. Which of them booted this kernel is not known here"
