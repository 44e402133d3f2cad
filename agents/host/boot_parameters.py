"""The kernel's command line: what is in force, what the boot loaders' files ask for, and who booted this kernel.

A command line can hold anything, so only parameters of known names and harmless form leave the target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script

# The files are shell (GRUB) or one line (systemd-boot). grub-mkconfig reads /etc/default/grub and then grub.d/*.cfg.
BOOT_PARAMETERS = Script(
    name="boot_parameters",
    text=r"""
known() {
  case ${1%%=*} in
    acpi|amd_iommu|amd_pstate|amd_prefcore|clocksource|cpuidle.governor|cpuidle.off|default_hugepagesz) ;;
    hugepages|hugepagesz|idle|intel_idle.max_cstate|intel_iommu|intel_pstate|iommu|iommu.passthrough) ;;
    iommu.strict|irqaffinity|isolcpus|maxcpus|mem|mem_encrypt|mitigations|modprobe.blacklist|module_blacklist) ;;
    noapic|nohz|nohz_full|nosmt|nouveau.modeset|nr_cpus|numa|numa_balancing|nvidia.*|nvidia-*.*|nvidia_*.*) ;;
    pci|pcie_acs_override|pcie_aspm|pcie_aspm.policy|pcie_port_pm|pcie_ports|preempt|processor.max_cstate) ;;
    rcu_nocbs|rd.driver.blacklist|skew_tick|systemd.unified_cgroup_hierarchy|transparent_hugepage|tsc) ;;
    vfio-pci.ids|vfio_pci.ids|zfs.zfs_arc_max|zfs.zfs_arc_min) ;;
    *) return 1 ;;
  esac
  case $1 in *[!A-Za-z0-9_.,:=+/*@-]*) return 1 ;; esac
}
strip() {
  t=${1#[\"\']}; t=${t#[\"\']}; t=${t%[\"\']}; t=${t%[\"\']}
}
file() {
  [ -e "$1" ] || return 0
  [ -r "$1" ] || { echo "denied|$1"; return 0; }
  n=0
  while IFS= read -r line || [ -n "$line" ]; do
    n=$((n + 1))
    words=$line; variable=line
    if [ "$2" = grub ]; then
      words=${line#"${line%%[! 	]*}"}; words=${words#export }
      case $words in
        GRUB_CMDLINE_LINUX=*|GRUB_CMDLINE_LINUX_DEFAULT=*) variable=${words%%=*}; words=${words#*=} ;;
        *) continue ;;
      esac
    fi
    kind=whole
    case $words in
      *\`*|*\$\(*|*\\) kind=computed ;;
      *\$GRUB_CMDLINE_LINUX*|*\$\{GRUB_CMDLINE_LINUX*) kind=extended ;;
      *\$*) kind=computed ;;
    esac
    echo "line|$1|$n|$variable|$kind"
    for word in $words; do
      strip "$word"
      case $t in '#'*) break ;; esac
      known "$t" && echo "asked|$1|$n|$variable|$t"
    done
  done <"$1"
}
read -r booted </proc/cmdline
set -- /etc/default/grub /etc/default/grub.d/*.cfg
set -f
for word in $booted; do
  known "$word" && echo "force|$word"
  case $word in
    BOOT_IMAGE=*[!A-Za-z0-9_./,:@~+\(\)-]*) ;;
    BOOT_IMAGE=*) echo "loader|grub" ;;
    initrd=*\\*) echo "loader|efi" ;;
  esac
done
[ -d /sys/firmware/efi ] && echo "efi|yes"
[ -s /etc/kernel/proxmox-boot-uuids ] && echo "esps|yes"
info=/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f
[ -r "$info" ] && echo "info|$(tr -dc 'A-Za-z0-9 .+~-' <"$info")"
for f in "$@"; do file "$f" grub; done
file /etc/kernel/cmdline line
stat -c 'time|%n|%Y' "$@" /etc/kernel/cmdline /boot/grub/grub.cfg 2>/dev/null
sed -n 's/^btime /boot|/p' /proc/stat
echo end
""",
)


class Parameter(Fact):
    """A parameter in force, as /proc/cmdline has it."""

    text: str  # "amd_pstate=active"
    evidence: Evidence

    @property
    def name(self) -> str:
        """Before the first `=`."""
        return self.text.partition("=")[0]


class Asked(Fact):
    """A parameter that a boot loader's file asks for."""

    text: str
    file: str
    line: int
    evidence: Evidence

    @property
    def name(self) -> str:
        """Before the first `=`."""
        return self.text.partition("=")[0]


class BootParameters(Fact):
    """Times are in seconds since 1970, as the target's clock has them."""

    in_force: tuple[Parameter, ...]
    asked: tuple[Asked, ...]
    loader: str  # "grub", "systemd-boot", or empty when nothing says
    loader_evidence: Evidence | None
    efi: bool
    managed_esps: bool  # proxmox-boot-tool keeps copies of kernels and configuration on its own partitions
    unread: tuple[Evidence, ...]  # files that exist and could not be read, or hold shell that only a shell can work out
    changed: dict[str, int]  # when each of the files, and what GRUB makes of them, was last written
    booted: int | None

    def value(self, name: str) -> str | None:
        """Of a parameter in force: the last one counts; None where it is not there."""
        values = [one.text.partition("=")[2] for one in self.in_force if one.name == name]
        return values[-1] if values else None


def boot_parameters(capture: Capture) -> BootParameters:
    """What `BOOT_PARAMETERS` printed.

    Raises:
        ParseError: another form, or an output that breaks off.
    """
    rows: dict[str, list[tuple[list[str], Line]]] = {}
    line = capture.first()
    for line in capture.lines():
        kind, *values = line.text.split("|")
        if len(values) != _FIELDS.get(kind):
            raise ParseError(line.evidence, "a boot parameter")
        rows.setdefault(kind, []).append((values, line))
    if line.text != "end":
        raise ParseError(line.evidence, "the end of the boot parameters")
    loader, evidence = _loader(rows)
    return BootParameters(
        in_force=tuple(Parameter(text=text, evidence=at.evidence) for (text,), at in rows.get("force", ())),
        asked=tuple(_asked(rows)),
        loader=loader,
        loader_evidence=evidence,
        efi="efi" in rows,
        managed_esps="esps" in rows,
        unread=tuple(_unread(rows)),
        changed={path: _number(seconds, at) for (path, seconds), at in rows.get("time", ())},
        booted=next((_number(seconds, at) for (seconds,), at in rows.get("boot", ())), None),
    )


_FIELDS = {"force": 1, "loader": 1, "efi": 1, "esps": 1, "info": 1, "boot": 1, "denied": 1}
_FIELDS |= {"time": 2, "line": 4, "asked": 4, "end": 0}
_Rows = dict[str, list[tuple[list[str], Line]]]


def _asked(rows: _Rows) -> Iterator[Asked]:
    """A later assignment of a GRUB variable replaces the earlier one, except where it starts from it."""
    replaced: dict[str, tuple[str, int]] = {}
    for (file, number, variable, kind), at in rows.get("line", ()):
        if variable != "line" and kind != "extended":
            replaced[variable] = file, _number(number, at)
    order = {(file, number): index for index, ((file, number, _, _), _) in enumerate(rows.get("line", ()))}
    for (file, number, variable, text), at in rows.get("asked", ()):
        last = replaced.get(variable)
        if last and order.get((file, number), 0) < order.get((last[0], str(last[1])), 0):
            continue
        yield Asked(text=text, file=file, line=_number(number, at), evidence=at.evidence)


def _unread(rows: _Rows) -> Iterator[Evidence]:
    yield from (at.evidence for _, at in rows.get("denied", ()))
    yield from (at.evidence for values, at in rows.get("line", ()) if values[3] == "computed")


def _loader(rows: _Rows) -> tuple[str, Evidence | None]:
    """Traces of this very boot, whatever else is installed: the EFI variable in which a loader names itself
    (systemd-boot, GRUB since 2.12), else the command line. GRUB's `linux` command adds BOOT_IMAGE=, and a kernel that
    systemd-boot starts as an EFI program gets initrd= with backslashes.
    """
    for (said,), at in rows.get("info", ()):
        name = next((name for name in ("systemd-boot", "grub") if said.lower().startswith(name)), "")
        if name:
            return name, at.evidence
    for (said,), at in rows.get("loader", ()):
        return ("systemd-boot" if said == "efi" else said), at.evidence
    return "", None


def _number(text: str, at: Line) -> int:
    if re.fullmatch(r"[0-9]{1,12}", text, re.ASCII) is None:
        raise ParseError(at.evidence, "a number")
    return int(text)
