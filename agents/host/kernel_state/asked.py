"""Judgements on kernel parameters that a boot loader's file asks for and that are not in force."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.boot_loader import reads, where
from gapline.agents.host.boot_parameters import Asked, BootParameters
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.problem import Problem, ProblemKind

CODES = (
    Code(
        code="kernel.parameter_not_in_force",
        title="A kernel parameter was asked for and is not in force",
        meaning="A boot loader's file asks for it, and /proc/cmdline, which is what counts, lacks it: the file of "
        "another boot loader was edited, its configuration was not made anew, or the host was not rebooted since.",
    ),
)
_GRUB_MADE = "/boot/grub/grub.cfg"


def not_in_force(boot: BootParameters) -> Iterator[Finding]:
    """One for each parameter's name; what another file has already brought into force is none."""
    force = {one.text for one in boot.in_force}
    missing = [one for one in boot.asked if one.text not in force]
    for name in dict.fromkeys(one.name for one in missing):
        yield _finding(name, [one for one in missing if one.name == name], boot)


def unread(boot: BootParameters) -> tuple[Problem, ...]:
    """Files that could not be worked out, so that more may be asked for."""
    return tuple(
        Problem(
            kind=ProblemKind.UNREADABLE,
            detail=f"what the boot loader's file asks for cannot be told without running it: {one.text}",
            hint="Compare it by hand with /proc/cmdline.",
        )
        for one in boot.unread
    )


def _finding(name: str, asked: Sequence[Asked], boot: BootParameters) -> Finding:
    fresh = all(_written_after_boot(one.file, boot) for one in asked)
    severity = Severity.LOW if fresh else Severity.MEDIUM
    instead = [one for one in boot.in_force if one.name == name]
    loader = (boot.loader_evidence,) if boot.loader_evidence else ()
    return Finding(
        code="kernel.parameter_not_in_force",
        subject=name,
        severity=severity,
        base_severity=Severity.MEDIUM,
        severity_reason="medium → low: it was asked for after the last boot, so the next one decides" if fresh else "",
        title=f"{asked[-1].text} is asked for and not in force",
        observed=f"{_places(asked)}; /proc/cmdline has {', '.join(one.text for one in instead) or f'no {name}'}: "
        f"{_why(asked[-1], boot)}",
        expected=f"{asked[-1].text} in /proc/cmdline, or in no file",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(*(one.evidence for one in asked), *(one.evidence for one in instead), *loader),
        settled_by="a decode benchmark before and after the reboot that brings it into force",
        remedy=Remedy(
            now="Nothing without a reboot.",
            lasting=f"Write {asked[-1].text} into {where(boot)}; reboot, and check /proc/cmdline.",
            undo="Take it out again, refresh and reboot.",
            cost="A reboot. Before it, make sure that the next kernel has an NVIDIA module: dkms status.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent="host.kernel",
        ),
    )


def _why(asked: Asked, boot: BootParameters) -> str:
    if not reads(boot.loader, asked.file):
        return f"this kernel was booted by {boot.loader}, which does not read {asked.file}"
    if _written_after_boot(asked.file, boot):
        return f"{asked.file} was written after the host was booted"
    made = boot.changed.get(_GRUB_MADE)
    if boot.loader == "grub" and made is not None and made < boot.changed.get(asked.file, 0):
        return f"{_GRUB_MADE} is older than {asked.file}, so update-grub was not run"
    return "the boot loader's configuration was not made anew, or another of its entries was booted"


def _written_after_boot(file: str, boot: BootParameters) -> bool:
    return boot.booted is not None and reads(boot.loader, file) and boot.changed.get(file, 0) > boot.booted


def _places(asked: Sequence[Asked]) -> str:
    return "; ".join(f"{one.file} line {one.line}: {one.text}" for one in asked)
