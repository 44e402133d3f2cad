"""Parameters of the loaded module, from /proc/driver/nvidia/params.

The module's own directory in /sys/module has none of them: they are registered without permissions (NVIDIA
open-gpu-kernel-modules, nv-reg.h).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.host.nvidia.fact import ModuleParameter, NvidiaDriver
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.source import File

PARAMETERS = File("/proc/driver/nvidia/params")
CODES = (
    Code(
        code="nvidia.msi_off",
        title="The driver uses shared line interrupts",
        meaning="NVreg_EnableMSI=0 makes the driver share one interrupt line with other devices instead of having "
        "vectors of its own, so each interrupt is also offered to drivers that have nothing to do with it.",
    ),
    Code(
        code="nvidia.registry_keys",
        title="The driver runs with keys of its own registry",
        meaning="NVreg_RegistryDwords sets switches that NVIDIA documents for nobody but itself. They can be what "
        "makes a special set-up work, and what breaks it with the next driver.",
    ),
)


def module_parameters(capture: Capture) -> Iterator[ModuleParameter]:
    """The lines ``Name: value``; text stands in quotes.

    Raises:
        ParseError: a line of another form.
    """
    for line in capture.lines():
        match = _LINE.fullmatch(line.text)
        if match is None:
            raise ParseError(line.evidence, "a parameter's name and value")
        yield ModuleParameter(name=match[1], value=match[2].strip('"'), evidence=line.evidence)


_LINE = re.compile(r"([A-Za-z0-9_]{1,60}): ?(.{0,2000})", re.ASCII)


def parameter_findings(fact: NvidiaDriver) -> Iterator[Finding]:
    """Those whose values are known to matter; every other one is in the fact."""
    for one in fact.parameters:
        if one.name == "EnableMSI" and one.value == "0":
            yield _msi(one)
        if one.name == "RegistryDwords" and one.value:
            yield _registry(one)


def _msi(one: ModuleParameter) -> Finding:
    return Finding(
        code="nvidia.msi_off",
        subject="EnableMSI",
        severity=Severity.MEDIUM,
        title="The driver was told not to use message-signalled interrupts",
        observed="EnableMSI: 0",
        expected="EnableMSI: 1, the driver's default",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(one.evidence,),
        settled_by="a decode benchmark before and after",
        remedy=_option("EnableMSI"),
    )


def _registry(one: ModuleParameter) -> Finding:
    return Finding(
        code="nvidia.registry_keys",
        subject="RegistryDwords",
        severity=Severity.INFO,
        title="The driver runs with undocumented registry keys",
        observed=one.value[:300],
        expected="none, unless somebody knows what they are for",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(one.evidence,),
        settled_by="the benchmark for whose sake they were set, with and without them",
        remedy=_option("RegistryDwords"),
    )


def _option(name: str) -> Remedy:
    return Remedy(
        now=f"grep -r {name} /etc/modprobe.d /proc/cmdline   # who asked for it",
        lasting="Remove the option, then update-initramfs -u -k all and reload the module or reboot.",
        undo="Put the option back.",
        cost="All GPU work stops while the module is reloaded.",
        risk=Risk.R3,
        restarts="every GPU container, or the host",
        verify_agent="host.nvidia_driver",
    )
