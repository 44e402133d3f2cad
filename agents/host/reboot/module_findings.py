"""Judgements on the kernel that boots next and its NVIDIA module."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.host.reboot.fact import InstalledKernel, NextBoot
from gapline.agents.host.reboot.module_remedy import headers_package, keep_running, remedy_for
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.problem import Problem, ProblemKind

_VERIFY = "host.next_boot"
CODES = (
    Code(
        code="next_boot.no_module",
        title="The kernel that boots next has no NVIDIA module",
        meaning="After the next reboot no GPU works, whatever works now: modprobe finds modules by the kernel's own "
        "modules.dep, and DKMS builds for a new kernel only if its headers are there and the source compiles with it.",
    ),
    Code(
        code="next_boot.build_failed",
        title="DKMS could not build the driver for an installed kernel",
        meaning="That kernel is not the one that boots next, but it is one menu entry, one lifted pin or one removed "
        "kernel away.",
    ),
    Code(
        code="next_boot.headers_do_not_follow",
        title="New kernels come without their headers",
        meaning="A package that always brings the newest kernel is installed, and none that brings its headers, so "
        "DKMS cannot build the driver for the next kernel that an upgrade installs.",
    ),
    Code(
        code="next_boot.choice_missing",
        title="The boot loader is told to boot a kernel that is not there",
        meaning="A pin or GRUB's default names a kernel or an entry that does not exist; the boot loader then takes "
        "another one, which nobody chose.",
    ),
    Code(
        code="next_boot.other_kernel",
        title="The next boot brings another kernel",
        meaning="It has an NVIDIA module. A reboot for any reason changes the kernel as well: defaults of frequency "
        "drivers differ between versions, and dynamic device majors are given out anew at every boot.",
    ),
)


def module_findings(fact: NextBoot) -> tuple[Finding, ...]:
    """What is known of the next kernel for certain; the rest is in `unseen_modules`."""
    return (
        *_no_module(fact),
        *_failed(fact),
        *_headers(fact),
        *_missing(fact),
        *_kernel(fact),
    )


def unseen_modules(fact: NextBoot) -> Iterator[Problem]:
    """Why it is not known whether the next kernel has a module."""
    hint = "Look at the boot menu's configuration, and at find /lib/modules -name 'nvidia*.ko*'."
    if not fact.kernels:
        yield _unseen("no kernel lies in /boot, so it comes from elsewhere (a hypervisor, a network)", hint)
        return
    unlisted = [kernel.version for kernel in _candidates(fact) if not kernel.listed]
    lacking = [kernel.version for kernel in _candidates(fact) if _lacks(kernel)]
    if fact.choice.version and not _candidates(fact):
        yield _unseen(f"kernel {fact.choice.version} boots next and does not lie in /boot", hint)
    elif unlisted:
        yield _unseen(f"modules.dep of {', '.join(unlisted)} could not be read", hint)
    elif lacking and len(lacking) < len(_candidates(fact)):
        why = f"which kernel boots next is not known ({fact.choice.by})"
        yield _unseen(f"{why}; without an NVIDIA module is {', '.join(lacking)}", hint)


def _unseen(detail: str, hint: str) -> Problem:
    return Problem(kind=ProblemKind.UNSEEN, detail=detail, hint=hint)


def _candidates(fact: NextBoot) -> tuple[InstalledKernel, ...]:
    """The one that boots next, or all where that is not known."""
    return tuple(one for one in fact.kernels if fact.choice.version in {None, one.version})


def _lacks(kernel: InstalledKernel) -> bool:
    return kernel.listed and not kernel.modules


def _doomed(fact: NextBoot) -> tuple[InstalledKernel, ...]:
    """The next kernel if it has no module; all kernels if none of them has one, whichever is next."""
    found = _candidates(fact)
    return found if found and all(_lacks(kernel) for kernel in found) else ()


def _no_module(fact: NextBoot) -> Iterator[Finding]:
    for kernel in _doomed(fact):
        down = kernel.version == fact.running and fact.loaded is None
        failure = fact.failure(kernel.version)
        yield Finding(
            code="next_boot.no_module",
            subject=kernel.version,
            severity=Severity.CRITICAL if down else Severity.HIGH,
            base_severity=Severity.HIGH,
            severity_reason="high → critical: it is the running kernel, and no driver is loaded" if down else "",
            title=f"Kernel {kernel.version} boots next and has no NVIDIA module",
            observed=f"chosen by {fact.choice.by}; {_why(fact, kernel)}",
            expected=f"an NVIDIA module in /lib/modules/{kernel.version}",
            effect=Effect.BREAKS,
            confidence=Confidence.INFERRED,
            evidence=(*fact.choice.evidence, kernel.evidence, *((failure.evidence,) if failure else ())),
            remedy=remedy_for(fact, kernel),
        )


def _why(fact: NextBoot, kernel: InstalledKernel) -> str:
    failure = fact.failure(kernel.version)
    headers = "its headers are installed" if kernel.headers else "its headers are not installed"
    if failure:
        return f"DKMS could not build {failure.name} {failure.version} for it: {failure.said}; {headers}"
    if not fact.dkms:
        return f"no NVIDIA driver is registered with DKMS, so none is built for new kernels; {headers}"
    return f"DKMS has {', '.join(f'{one.name} {one.version}' for one in fact.dkms)} and did not install it; {headers}"


def _failed(fact: NextBoot) -> Iterator[Finding]:
    doomed = _doomed(fact)
    for failure in fact.failures:
        kernel = fact.kernel(failure.kernel)
        if kernel is None or kernel in doomed or not _lacks(kernel):
            continue
        yield Finding(
            code="next_boot.build_failed",
            subject=f"{failure.name} {failure.version} for {failure.kernel}",
            severity=Severity.LOW,
            title=f"DKMS could not build {failure.name} {failure.version} for kernel {failure.kernel}",
            observed=failure.said,
            expected="a build for every installed kernel, or no such kernel",
            effect=Effect.PLAUSIBLE,
            confidence=Confidence.VERIFIED,
            evidence=(failure.evidence, kernel.evidence),
            settled_by="booting that kernel",
            remedy=remedy_for(fact, kernel),
        )


def _headers(fact: NextBoot) -> Iterator[Finding]:
    names = {package.name: package for package in fact.packages}
    for kernels, headers, install in _FOLLOWERS:
        brings = next((package for name, package in names.items() if re.fullmatch(kernels, name)), None)
        if not fact.dkms or not brings or brings.held or any(re.fullmatch(headers, name) for name in names):
            continue
        yield Finding(
            code="next_boot.headers_do_not_follow",
            subject=brings.name,
            severity=Severity.MEDIUM,
            title=f"{brings.name} brings new kernels, and nothing brings their headers",
            observed=f"{brings.name} is installed, {install} is not, and DKMS builds the driver",
            expected=f"{install} beside {brings.name}",
            effect=Effect.PLAUSIBLE,
            confidence=Confidence.VERIFIED,
            evidence=(brings.evidence, *(one.evidence for one in fact.dkms)),
            settled_by="the next upgrade of the kernel: dkms status",
            remedy=Remedy(
                now=f"apt install {install}",
                lasting="The package does it; after each upgrade of the kernel and before the reboot: dkms status.",
                undo=f"apt remove {install}",
                cost="some 100 MB on disk for each kernel",
                risk=Risk.R1,
                restarts="nothing",
                verify_agent=_VERIFY,
            ),
        )


# Kernel packages that follow new versions, what would bring their headers, and which of these to install. Packages
# of a series (proxmox-headers-6.14) do it within the series.
_FOLLOWERS = (
    (
        r"proxmox-default-kernel",
        r"(proxmox-default|pve)-headers|(proxmox|pve)-headers-\d+\.\d+",
        "proxmox-default-headers",
    ),
    (r"linux-image-amd64", r"linux-headers-amd64", "linux-headers-amd64"),
    (r"linux-image-generic", r"linux-headers-generic", "linux-headers-generic"),
)


def _missing(fact: NextBoot) -> Iterator[Finding]:
    if not fact.choice.missing:
        return
    clear = "proxmox-boot-tool kernel unpin" if fact.proxmox_tool else "correct GRUB_DEFAULT in /etc/default/grub"
    yield Finding(
        code="next_boot.choice_missing",
        subject=fact.choice.asked_in,
        severity=Severity.MEDIUM,
        title=f"{fact.choice.asked_in} asks for {fact.choice.missing}, which is not there",
        observed=fact.choice.by,
        expected=f"an installed kernel; there are {', '.join(one.version for one in fact.kernels) or 'none'}",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=fact.choice.evidence,
        settled_by="a reboot, watched at the console",
        remedy=Remedy(
            now=f"{keep_running(fact)}, or {clear}",
            lasting="The same; on hosts without proxmox-boot-tool followed by update-grub.",
            undo="Set the old value again.",
            cost="none before the next boot",
            risk=Risk.R1,
            restarts="nothing",
            verify_agent=_VERIFY,
        ),
    )


def _kernel(fact: NextBoot) -> Iterator[Finding]:
    version = fact.choice.version
    kernel = fact.kernel(version) if version else None
    if kernel is None or version == fact.running or not kernel.modules:
        return
    yield Finding(
        code="next_boot.other_kernel",
        subject="kernel",
        severity=Severity.INFO,
        title=f"Kernel {fact.running} runs, and {version} boots next; it has an NVIDIA module",
        observed=f"chosen by {fact.choice.by}; {', '.join(kernel.modules)}",
        expected="either; it should not come as a surprise",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=(*fact.choice.evidence, *kernel.module_evidence),
        origin="Linux fs/char_dev.c: dynamic majors are given out in the order of loading",
        remedy=Remedy(
            now=f"To stay with the running one: {keep_running(fact)}",
            lasting=f"To go on with {version}: reboot at a time of your choice, then audit again.",
            undo=f"Boot {fact.running} from the menu; keep it and {headers_package(fact.running)} installed.",
            cost="A reboot.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent=_VERIFY,
        ),
    )
