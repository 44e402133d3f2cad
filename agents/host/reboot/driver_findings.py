"""Judgements on which driver the next boot loads."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.reboot.fact import NextBoot
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

_VERIFY = "host.next_boot"
CODES = (
    Code(
        code="next_boot.other_driver",
        title="The next boot loads another driver version",
        meaning="DKMS has another version for the next kernel than the one that runs. The user-space libraries in "
        "containers must have the version of the module: what works now can fail with 'API mismatch' after a reboot.",
    ),
    Code(
        code="next_boot.several_modules",
        title="The kernel that boots next has several NVIDIA modules",
        meaning="A package and NVIDIA's own installer, or two packages, were mixed. Which module is loaded depends on "
        "the order that depmod keeps and on alternatives, so an upgrade of one can leave the other in force.",
    ),
)


def driver_findings(fact: NextBoot) -> Iterator[Finding]:
    """Only where it is known which kernel boots next."""
    yield from _driver(fact)
    yield from _several(fact)


def _driver(fact: NextBoot) -> Iterator[Finding]:
    coming = [one for one in fact.dkms if fact.choice.version in one.built]
    if not fact.loaded or not fact.loaded_evidence or not coming or fact.loaded in {one.version for one in coming}:
        return
    versions = " and ".join(sorted({one.version for one in coming}))
    yield Finding(
        code="next_boot.other_driver",
        subject="driver version",
        severity=Severity.MEDIUM,
        title=f"Driver {fact.loaded} runs, and the next boot loads {versions}",
        observed=f"loaded {fact.loaded}; built for kernel {fact.choice.version}: {versions}",
        expected="the same version, or containers that are ready for the new one",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.INFERRED,
        evidence=(fact.loaded_evidence, *(one.evidence for one in coming), *fact.choice.evidence),
        settled_by="pair.driver_match after the reboot",
        remedy=Remedy(
            now="Nothing while it runs.",
            lasting=f"Upgrade the user-space libraries in every GPU container to {versions} together with the reboot, "
            "and hold the driver's packages in between: apt-mark hold.",
            undo=f"Install driver {fact.loaded} again.",
            cost="GPU containers are down between the reboot and their upgrade.",
            risk=Risk.R3,
            restarts="the host and every GPU container",
            verify_agent=_VERIFY,
        ),
    )


def _several(fact: NextBoot) -> Iterator[Finding]:
    kernel = fact.kernel(fact.choice.version) if fact.choice.version else None
    if kernel is None or len(kernel.modules) <= 1:
        return
    yield Finding(
        code="next_boot.several_modules",
        subject=kernel.version,
        severity=Severity.LOW,
        title=f"Kernel {kernel.version} has {len(kernel.modules)} NVIDIA modules",
        observed=", ".join(kernel.modules),
        expected="one",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=kernel.module_evidence,
        settled_by=f"modinfo -k {kernel.version} -n nvidia, and modinfo -F version on each of the files",
        remedy=Remedy(
            now=f"cd /lib/modules/{kernel.version}; modinfo -F version {' '.join(kernel.modules)}",
            lasting="Remove the driver that is not wanted: nvidia-uninstall for NVIDIA's installer, apt purge for "
            "packages; then depmod -a and update-initramfs -u -k all.",
            undo="Install it again.",
            cost="none while the module that runs stays loaded",
            risk=Risk.R1,
            restarts="nothing before the reboot",
            verify_agent=_VERIFY,
        ),
    )
