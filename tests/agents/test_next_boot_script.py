"""What the script about the next boot makes of hosts that are laid out as files below a folder."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from gapline.agents.host.reboot.script import SOURCES
from gapline.orchestrator.model.source import Script

OLD, NEW = "6.8.12-9-pve", "6.17.13-2-pve"
LOG = f"""\
DKMS make.log for nvidia-550.163.01 for kernel {NEW} (x86_64)
Tue Oct 14 09:12:44 CEST 2025
  CC [M]  /var/lib/dkms/nvidia/550.163.01/build/nvidia/nv.o
/var/lib/dkms/nvidia/550.163.01/build/nvidia/nv-mmap.c:61:5: error: implicit declaration of function
make[3]: *** [/usr/src/linux-headers-{NEW}/Makefile:2016: .] Error 2
make[1]: *** [Makefile:248: __sub-make] Error 2
"""
GRUB = """\
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
  fi
}
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
else
   set default="gnulinux-advanced-7d20>gnulinux-6.8.12-9-pve-advanced-7d20"
fi
menuentry 'Proxmox VE GNU/Linux' --class gnu $menuentry_id_option 'gnulinux-simple-7d20' {
\tlinux\t/boot/vmlinuz-6.17.13-2-pve root=/dev/mapper/pve-root ro password=hunter2
}
submenu 'Advanced options for Proxmox VE GNU/Linux' $menuentry_id_option 'gnulinux-advanced-7d20' {
\tmenuentry 'PVE, with Linux 6.8.12-9-pve' --class gnu $menuentry_id_option 'gnulinux-6.8.12-9-pve-advanced-7d20' {
\t\tlinux\t/boot/vmlinuz-6.8.12-9-pve root=/dev/mapper/pve-root ro
\t}
}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
\tfwsetup
}
"""
UNIT = "[Unit]\nBefore=pve-guests.service\n[Service]\nEnvironment=T=hunter2\nExecStart=nvidia-modprobe -c0 -u\n"
HOST = {
    f"boot/vmlinuz-{OLD}": "",
    f"boot/vmlinuz-{NEW}": "",
    "boot/vmlinuz-6.8.12-9-pve.old": "",
    "boot/grub/grub.cfg": GRUB,
    "boot/grub/grubenv": "# GRUB Environment Block\nsaved_entry=gnulinux-simple-7d20\n######",
    f"lib/modules/{OLD}/modules.dep": "updates/dkms/nvidia-uvm.ko: updates/dkms/nvidia.ko\nupdates/dkms/nvidia.ko:\n"
    "kernel/drivers/i2c/i2c-nvidia-gpu.ko.zst:\nkernel/drivers/video/fbdev/nvidia/nvidiafb.ko.zst:\n",
    f"lib/modules/{OLD}/build/Makefile": "",
    f"lib/modules/{NEW}/modules.dep": "kernel/fs/nvidia.txt:\n",
    "var/lib/dkms/nvidia/550.163.01/source/dkms.conf": "",
    f"var/lib/dkms/nvidia/550.163.01/{OLD}/x86_64/module/nvidia.ko": "",
    "var/lib/dkms/nvidia/550.163.01/build/make.log": LOG,
    "var/lib/dkms/nvidia-fs/2.17/source/dkms.conf": "",
    "etc/kernel/proxmox-boot-pin": f"{OLD}\n",
    "etc/systemd/system/gpu-nodes.service": UNIT,
    "etc/systemd/system/unused.service": "[Service]\nExecStart=nvidia-smi -pm 1\n",
    "etc/udev/rules.d/70-gpu.rules": '# RUN+="nvidia-smi"\nKERNEL=="nvidia", RUN+="/usr/bin/nvidia-smi -L"\n',
    "etc/pve/lxc/129.conf": "lxc.hook.pre-start: nvidia-modprobe -u\n[old]\nlxc.hook.pre-start: nvidia-smi\n",
    "var/lib/dpkg/status": "Package: proxmox-default-kernel\nStatus: hold ok installed\nVersion: 2.0\n\n"
    "Package: proxmox-headers-6.8\nStatus: deinstall ok config-files\n\nPackage: bash\nStatus: install ok installed\n",
}
WANTED = f"""\
kernel|{NEW}|yes|no
kernel|{OLD}|yes|yes
module|{OLD}|updates/dkms/nvidia.ko
dkms|nvidia|550.163.01
built|nvidia|550.163.01|{OLD}
failed|nvidia|550.163.01|{NEW}|/var/lib/dkms/nvidia/550.163.01/build/nvidia/nv-mmap.c:61:5: error: implicit declaration of function
pin|/etc/kernel/proxmox-boot-pin|{OLD}
chosen|saved_entry|gnulinux-simple-7d20
default|${{next_entry}}
default|gnulinux-advanced-7d20>gnulinux-6.8.12-9-pve-advanced-7d20
menu|0|menuentry|gnulinux-simple-7d20|Proxmox VE GNU/Linux
boots|{NEW}
menu|0|submenu|gnulinux-advanced-7d20|Advanced options for Proxmox VE GNU/Linux
menu|1|menuentry|gnulinux-6.8.12-9-pve-advanced-7d20|PVE, with Linux 6.8.12-9-pve
boots|{OLD}
menu|0|menuentry|uefi-firmware|UEFI Firmware Settings
looked|3
before|/etc/systemd/system/gpu-nodes.service
maker|/etc/systemd/system/gpu-nodes.service|nvidia-modprobe -c0 -u
maker|/etc/udev/rules.d/70-gpu.rules|nvidia-smi
maker|/etc/pve/lxc/129.conf|nvidia-modprobe -u
package|proxmox-default-kernel|hold
end
"""  # noqa: E501 - the log's line


def lay_out(root: Path, files: dict[str, str]) -> None:
    """The files below the root, and the one unit that is enabled."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "gpu-nodes.service").symlink_to("../gpu-nodes.service")


def run(shell: tuple[str, ...], root: Path) -> str:
    """What the script prints when every absolute path of it starts at the root."""
    source = SOURCES["next_boot"]
    assert isinstance(source, Script)
    text = re.sub(r"(?<![\w*/}\]])/(?=(boot|lib|etc|usr/lib|var)\b)", f"{root}/", source.text)
    done = subprocess.run([*shell, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.replace(str(root), "").replace("lxc|yes\n", "")


def test_a_host_with_everything(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Kernels, modules by modules.dep, builds, pins, the menu, enabled makers of nodes only, packages; no secret."""
    lay_out(tmp_path, HOST)
    printed = run(shell, tmp_path)
    assert sorted(printed.splitlines()) == sorted(WANTED.splitlines())
    assert "hunter2" not in printed


def test_the_menu_keeps_its_order(shell: tuple[str, ...], tmp_path: Path) -> None:
    """What boots an entry follows the entry."""
    lay_out(tmp_path, HOST)
    kinds = [line.split("|")[0] for line in run(shell, tmp_path).splitlines()]
    menu = [kind for kind in kinds if kind in {"menu", "boots"}]
    assert menu == ["menu", "boots", "menu", "menu", "boots", "menu"]


def test_an_empty_host(shell: tuple[str, ...], tmp_path: Path) -> None:
    """Nothing there is no error."""
    assert run(shell, tmp_path) == "looked|0\nend\n"
