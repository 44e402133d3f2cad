"""Which kernel boots next, as far as the files of the boot loaders tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gapline.agents.host.boot_parameters import BootParameters
from gapline.agents.host.kernel_version import newest
from gapline.agents.host.reboot.fact import Choice, InstalledKernel
from gapline.agents.host.reboot.grub_menu import Entry, chosen, tree
from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.errors import ParseError

Rows = Mapping[str, Sequence[tuple[list[str], Line]]]
_GRUB = "/boot/grub/grub.cfg"


def choice(rows: Rows, boot: BootParameters, kernels: Sequence[InstalledKernel]) -> Choice:
    """With proxmox-boot-tool the pins and then the newest; with GRUB its own menu; else not known.

    Where the tool keeps the boot partitions, /boot/grub/grub.cfg is not what GRUB reads.
    """
    if boot.managed_esps:
        return _by_proxmox(rows, kernels)
    if boot.loader == "grub" and "menu" in rows:
        return _by_grub(rows)
    who = f"{boot.loader} booted this kernel" if boot.loader else "the boot loader of this kernel is not known"
    return Choice(version=None, by=who, evidence=(boot.loader_evidence,) if boot.loader_evidence else ())


def _by_proxmox(rows: Rows, kernels: Sequence[InstalledKernel]) -> Choice:
    installed = {kernel.version: kernel for kernel in kernels}
    latest = newest(installed)
    found = (installed[latest].evidence,) if latest else ()
    missing = [(file, version, at.evidence) for (file, version), at in rows.get("pin", ()) if version not in installed]
    for (file, version), at in rows.get("pin", ()):
        if version in installed:
            return Choice(version=version, by=file, evidence=(at.evidence,))
    if missing:
        file, version, evidence = missing[0]
        by = "the pin names a kernel that is not installed"
        return Choice(version=None, by=by, evidence=(evidence, *found), missing=version or "?", asked_in=file)
    return Choice(version=latest, by="the newest kernel, by proxmox-boot-tool", evidence=found)


def _by_grub(rows: Rows) -> Choice:
    menu = tree(list(_entries(rows)))
    saved = {name: (text, at.evidence) for (name, text), at in rows.get("chosen", ())}
    wanted = [(text, at.evidence) for (text,), at in rows.get("default", ())]
    if "next_entry" in saved:
        wanted.append(saved["next_entry"])
    wanted = [one for one in wanted if one[0] != "${next_entry}"] or [("0", rows["menu"][0][1].evidence)]
    text, evidence = wanted[-1]
    if text == "${saved_entry}":
        text, evidence = saved.get("saved_entry", ("0", evidence))
    entry = chosen(menu, text)
    if entry is None:
        by = f"GRUB takes its first entry, since it has none called {text}"
        return Choice(version=menu[0].kernel, by=by, evidence=(evidence,), missing=text, asked_in=_GRUB)
    told = () if entry.kernel else (rows["menu"][0][1].evidence,)
    return Choice(version=entry.kernel, by=f"GRUB's entry {entry.title or entry.id}", evidence=(evidence, *told))


def _entries(rows: Rows) -> Sequence[Entry]:
    found: list[tuple[int, Entry]] = []
    for (depth, kind, id_, title), at in rows.get("menu", ()):
        if not (depth.isascii() and depth.isdigit()):
            raise ParseError(at.evidence, "how deep in the menu an entry stands")
        entry = Entry(depth=int(depth[:3]), submenu=kind == "submenu", id=id_, title=title)
        found.append((at.number, entry))
    for (kernel,), at in rows.get("boots", ()):
        above = [entry for number, entry in found if number < at.number]
        if above and above[-1].kernel is None:
            above[-1].kernel = kernel
    return [entry for _, entry in found]
