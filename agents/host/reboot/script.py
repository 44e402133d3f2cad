"""What is read to tell which kernel boots next and what it will find.

Places: DKMS keeps builds in /var/lib/dkms/NAME/VERSION/KERNEL/ARCHITECTURE and leaves build/make.log behind where one
failed (dkms(8)); `modprobe` finds modules by /lib/modules/KERNEL/modules.dep; proxmox-boot-tool keeps its pins in
/etc/kernel (proxmox-kernel-helper, scripts/functions); GRUB's menu is /boot/grub/grub.cfg.
"""

from __future__ import annotations

from gapline.agents.host.boot_parameters import BOOT_PARAMETERS
from gapline.agents.host.nvidia.reading import SOURCES as DRIVER
from gapline.agents.host.pci_gpu import PCI_GPUS
from gapline.orchestrator.model.source import File, Script, Source

# nvidia-current and the like are Debian's names for the same module; nvidia-fs is none of the driver's.
_KERNELS = r"""
for f in /boot/vmlinuz-*; do
  v=${f#/boot/vmlinuz-}
  case $v in '*'|*.old|*.bak|*rescue*|*[!A-Za-z0-9.+~_-]*) continue ;; esac
  l=no; h=no
  [ -r "/lib/modules/$v/modules.dep" ] && l=yes
  [ -e "/lib/modules/$v/build/Makefile" ] && h=yes
  echo "kernel|$v|$l|$h"
done
grep -aHoE '^([^: ]*/)?nvidia(-(current|open|tesla|legacy|server|[0-9]+(xx)?))*\.ko(\.(xz|zst|gz))?:' \
  /lib/modules/*/modules.dep 2>/dev/null |
  sed -n 's|^/lib/modules/\([^/]*\)/modules.dep:\(.*\):$|module\|\1\|\2|p'
set --
for f in /var/lib/dkms/nvidia*/[0-9]*; do
  n=${f%/*}; n=${n##*/}
  case $n in *-fs) continue ;; esac
  [ -e "$f/source" ] || continue
  echo "dkms|$n|${f##*/}"
  for b in "$f"/*/*/module; do
    [ -d "$b" ] || continue
    b=${b%/*/module}; echo "built|$n|${f##*/}|${b##*/}"
  done
  [ -r "$f/build/make.log" ] && set -- "$@" "$f/build/make.log"
done
[ $# = 0 ] || awk '
function done_with() {
  if (kernel != "" && last != "") print "failed|" place "|" kernel "|" substr(first != "" ? first : last, 1, 200)
}
FNR == 1 {
  done_with(); kernel = first = last = ""; parts = split(FILENAME, p, "/"); place = p[parts - 3] "|" p[parts - 2]
  if (match($0, /for kernel [A-Za-z0-9.+~_-]+/)) kernel = substr($0, RSTART + 11, RLENGTH - 11)
}
{ gsub(/[^ -{}~]/, "?") }
first == "" && / error: |\*\*\* .*(missing|not |Unable)/ { first = $0 }
/\*\*\* .*Error [0-9]|\*\*\* .*Stop/ { last = $0 }
END { done_with() }' "$@"
"""
_CHOICE = r"""
for f in /etc/kernel/next-boot-pin /etc/kernel/proxmox-boot-pin; do
  [ -s "$f" ] || continue
  v=; read -r v <"$f"
  case $v in *[!A-Za-z0-9.+~_-]*) v= ;; esac
  echo "pin|$f|$v"
done
if [ -r /boot/grub/grubenv ]; then
  sed -n '/|/d; s/[^ -~]/?/g; s/^\(saved_entry\|next_entry\)=\(..*\)/chosen|\1|\2/p' /boot/grub/grubenv
elif [ -e /boot/grub/grubenv ]; then echo "denied|/boot/grub/grubenv"; fi
if [ -r /boot/grub/grub.cfg ]; then
  awk '
  function quoted(t) { return match(t, /\047[^\047]*\047|"[^"]*"/) ? substr(t, RSTART + 1, RLENGTH - 2) : "" }
  function clean(t) { gsub(/[^ -{}~]/, "?", t); return substr(t, 1, 200) }
  /^[ \t]*set default=/ { d = $0; sub(/^[^=]*=/, "", d); gsub(/["\047]/, "", d); print "default|" clean(d) }
  /^[ \t]*(menuentry|submenu)[ \t]/ {
    id = ""; if (match($0, /menuentry_id_option[^ \t]*[ \t]+/)) id = quoted(substr($0, RSTART + RLENGTH))
    print "menu|" depth + 0 "|" $1 "|" clean(id) "|" clean(quoted($0))
  }
  /^[ \t]*linux(efi|16)?[ \t]/ { k = $2; if (sub(/^.*vmlinuz-/, "", k)) print "boots|" clean(k) }
  /\{[ \t]*$/ { open++; kind[open] = ($1 == "submenu"); depth += kind[open] }
  /^[ \t]*\}[ \t]*$/ { if (open) { depth -= kind[open]; open-- } }
  ' /boot/grub/grub.cfg
elif [ -e /boot/grub/grub.cfg ]; then echo "denied|/boot/grub/grub.cfg"; fi
"""
# A unit counts where a .wants or .requires link starts it. Of each line only the words that make nodes are taken.
_NODES = r"""
command -v lxc-start >/dev/null && echo "lxc|yes"
set --
for f in /etc/systemd/system/*.service /etc/systemd/system/*.service.d/*.conf /lib/systemd/system/nvidia*.service \
  /usr/lib/udev/rules.d/*nvidia*.rules /lib/udev/rules.d/*nvidia*.rules /etc/udev/rules.d/*.rules \
  /etc/rc.local /etc/crontab /etc/cron.d/* /var/spool/cron/crontabs/root /etc/modprobe.d/*.conf \
  /usr/lib/modprobe.d/nvidia*.conf /etc/pve/lxc/*.conf; do
  case $f in
    */lib/systemd/system/*|/etc/systemd/system/*.service)
      on=
      for l in /etc/systemd/system/*.wants/"${f##*/}" /etc/systemd/system/*.requires/"${f##*/}"; do
        [ -L "$l" ] && on=yes
      done
      [ -n "$on" ] || continue ;;
    /lib/udev/*) [ -L /lib ] && continue ;;
    /etc/rc.local) [ -x "$f" ] || continue ;;
  esac
  [ -f "$f" ] && [ -r "$f" ] && set -- "$@" "$f"
done
echo "looked|$#"
[ $# = 0 ] || awk '
/^[ \t]*[#;]/ { next }
/^[ \t]*\[.*\][ \t]*$/ && index(FILENAME, "/etc/pve/") == 1 { nextfile }
/^Before=.*(pve-guests|pve-container|lxc)/ { print "before|" FILENAME }
BEGIN {
  maker = "nvidia-(smi|persistenced|ctk|container-cli|modprobe)( +-[-a-z]+[ =]?[0-9]*)*"
  maker = maker "|create-uvm-dev-node|mknod[^;&|]*nvidia[a-z0-9-]*"
}
/nvidia/ {
  t = $0
  while (match(t, maker)) {
    print "maker|" FILENAME "|" substr(t, RSTART, RLENGTH); t = substr(t, RSTART + RLENGTH)
  }
}' "$@"
[ -d /etc/pve ] && { set -- /etc/pve/lxc/*.conf; [ -r "$1" ] || { [ "$(id -u)" = 0 ] || echo "denied|/etc/pve/lxc"; }; }
if [ -r /var/lib/dpkg/status ]; then
  awk '
  BEGIN { wanted = "^((proxmox|pve)-(default-)?(kernel|headers)|linux-(image|headers)-|proxmox-ve$)" }
  /^Package: / { p = ($2 ~ wanted) ? $2 : "" }
  /^Status: / && p != "" && $4 == "installed" { print "package|" p "|" $2 }
  ' /var/lib/dpkg/status
fi
echo end
"""

SOURCES: dict[str, Source] = {
    "pci": PCI_GPUS,
    "kernel": File("/proc/sys/kernel/osrelease"),
    "version": DRIVER["version"],
    "boot_parameters": BOOT_PARAMETERS,
    "next_boot": Script(name="next_boot", text=_KERNELS.lstrip() + _CHOICE.lstrip() + _NODES.lstrip()),
}
