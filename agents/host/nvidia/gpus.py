"""Judgements on the GPUs: the bus and the driver must know the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.nvidia.fact import DriverGpu, NvidiaDriver
from gapline.agents.host.pci_gpu import PciGpu, address
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

_VERIFY = "host.nvidia_driver"

CODES = (
    Code(
        code="nvidia.gpu_lost",
        title="A GPU is known to the bus or to the driver, but not to both",
        meaning="A GPU that the driver does not list failed to initialise (power, riser, BAR space); one that the bus "
        "no longer lists fell off it. Either way it computes nothing.",
    ),
    Code(
        code="nvidia.gpu_excluded",
        title="The driver was told to leave a GPU alone",
        meaning="NVreg_ExcludedGpus (or its older name) names this GPU; CUDA does not see it. It may be meant.",
    ),
)


def gpu_findings(fact: NvidiaDriver, strangers: Sequence[PciGpu]) -> tuple[Finding, ...]:
    """Nothing where the driver is not loaded; GPUs that nouveau holds, and those that the loaded flavour cannot drive,
    are findings of their own: their hardware is not at fault.
    """
    if fact.loaded is None:
        return ()
    on_bus = {address(gpu.bus_id): gpu for gpu in fact.pci}
    others = [gpu for gpu in fact.pci if gpu.driver != "nouveau" and gpu not in strangers]
    driven = {address(gpu.bus_id): gpu for gpu in fact.gpus}
    return (
        *(_undriven(gpu, fact) for gpu in others if address(gpu.bus_id) not in driven),
        *(_gone(gpu) for key, gpu in driven.items() if key not in on_bus),
        *_excluded(fact),
    )


def _undriven(gpu: PciGpu, fact: NvidiaDriver) -> Finding:
    return Finding(
        code="nvidia.gpu_lost",
        subject=gpu.bus_id,
        severity=Severity.CRITICAL,
        title=f"GPU {gpu.bus_id} is on the bus, but the driver does not run it",
        observed=f"{len(fact.pci)} GPUs on the bus, {len(fact.gpus)} in the driver; bound to "
        f"{gpu.driver or 'no driver'}",
        expected="listed in /proc/driver/nvidia/gpus",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(gpu.evidence, *(other.evidence for other in fact.gpus)),
        remedy=_reset("dmesg | grep -e NVRM -e " + gpu.bus_id[5:].removesuffix(".0")),
    )


def _gone(gpu: DriverGpu) -> Finding:
    return Finding(
        code="nvidia.gpu_lost",
        subject=gpu.bus_id,
        severity=Severity.CRITICAL,
        title=f"GPU {gpu.bus_id} has fallen off the bus",
        observed="listed by the driver, absent from the PCI bus",
        expected="present on the PCI bus",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(gpu.evidence,),
        remedy=_reset("dmesg | grep -e Xid -e AER"),
    )


def _excluded(fact: NvidiaDriver) -> Iterator[Finding]:
    for gpu in fact.gpus:
        if gpu.excluded:
            yield Finding(
                code="nvidia.gpu_excluded",
                subject=gpu.bus_id,
                severity=Severity.LOW,
                title=f"GPU {gpu.bus_id} is excluded from the driver",
                observed="GPU Excluded: Yes",
                expected="GPU Excluded: No, unless it is meant",
                effect=Effect.BREAKS,
                confidence=Confidence.VERIFIED,
                evidence=(gpu.evidence,),
                remedy=Remedy(
                    now="grep -r ExcludedGpus /etc/modprobe.d /proc/cmdline   # who asked for it",
                    lasting="Remove the option, then update-initramfs -u -k all and reload the module.",
                    undo="Put the option back.",
                    cost="All GPU work stops while the module is reloaded.",
                    risk=Risk.R3,
                    restarts="every GPU container, or the host",
                    verify_agent=_VERIFY,
                ),
            )


def _reset(look: str) -> Remedy:
    return Remedy(
        now=f"{look}   # the driver's reason; then power the host off and on, a warm reboot may not bring it back",
        lasting="Check power cables, riser and slot; exchange the GPU with a good one to tell card from slot.",
        undo="nothing to undo",
        cost="The host is down for the power cycle.",
        risk=Risk.R3,
        restarts="the host",
        verify_agent=_VERIFY,
    )
