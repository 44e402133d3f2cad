"""Is this a machine of its own, and if not, what does it hide?"""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.machine_kind import SOURCES, Kind, Machine, read
from gapline.orchestrator.model.agent import Agent, Code, Layer, Scope
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.trait import Trait

__all__ = ["AGENT", "Machine"]

_CODES = (
    Code(
        code="virtualization.guest",
        title="This host is a virtual machine",
        meaning="Its hypervisor decides CPU frequency and idle states, which memory is near which CPU, and what of the "
        "PCIe path is shown; what other agents say about these is true of the guest only.",
    ),
    Code(
        code="virtualization.wsl",
        title="This host is the Windows Subsystem for Linux",
        meaning="The GPU is reached through /dev/dxg and the driver of Windows: there are no NVIDIA device nodes and "
        "no kernel modules to check, and containers get the GPU in another way.",
    ),
    Code(
        code="virtualization.container",
        title="This host is itself a container",
        meaning="Name spaces, a device policy and lxcfs stand between it and the machine, so readings of the hardware "
        "can be filtered, and what is to be repaired is outside.",
    ),
)
_HIDDEN = {
    Kind.GUEST: "CPU frequency and idle states, the PCIe path above the GPUs with its ACS and link state, memory "
    "modules, the nodes that its memory lies on, other guests' load",
    Kind.WSL: "NVIDIA's kernel modules and device nodes, PCIe, CPU frequency, memory modules",
}
_OUTSIDE = "whatever its container manager filters: devices, CPUs, memory, mounts"


def judge(fact: Machine, _limits: Limits) -> Outcome:
    """Information for readers of the other findings; nothing here is wrong by itself."""
    return judged(fact, tuple(_findings(fact)), _unseen(fact))


def _findings(fact: Machine) -> Iterator[Finding]:
    if fact.kind is Kind.WSL:
        title = "This host is the Windows Subsystem for Linux: the driver belongs to Windows"
        yield _finding(fact, "virtualization.wsl", "WSL", title, _HIDDEN[Kind.WSL])
    if fact.kind is Kind.GUEST:
        title = f"This host is a virtual machine ({fact.model or 'its firmware names no product'})"
        yield _finding(fact, "virtualization.guest", "virtual machine", title, _HIDDEN[Kind.GUEST])
    if fact.container:
        title = f"This host is itself a container ({fact.container.value})"
        yield _finding(fact, "virtualization.container", "container", title, _OUTSIDE)


def _finding(fact: Machine, code: str, subject: str, title: str, hidden: str) -> Finding:
    inside = fact.container if subject == "container" else None
    return Finding(
        code=code,
        subject=subject,
        severity=Severity.INFO,
        title=title,
        observed=f"not to be seen from here: {hidden}",
        expected="bare metal, or an audit of the machine underneath as well",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(inside.evidence,) if inside else fact.evidence,
        origin="Linux arch/x86/include/asm/cpufeatures.h (X86_FEATURE_HYPERVISOR), systemd-detect-virt(1)",
        remedy=Remedy(
            now="Audit the machine underneath too, if it is yours: gapline audit root@THAT-HOST",
            lasting="Put that host into the inventory beside this one.",
            undo="Nothing to undo.",
            cost="None.",
            risk=Risk.R0,
            restarts="nothing",
            verify_agent="host.virtualization",
        ),
    )


def _unseen(fact: Machine) -> tuple[Problem, ...]:
    if fact.kind is not Kind.UNKNOWN:
        return ()
    detail = "neither the processor nor the firmware says whether a hypervisor runs this machine"
    return (Problem(kind=ProblemKind.MISSING, detail=detail, hint="systemd-detect-virt --vm may know more."),)


def traits(fact: Machine) -> tuple[Trait, ...]:
    """The firmware, among machines of one model. That of a guest is its hypervisor's."""
    if fact.bios is None or fact.kind is not Kind.BARE or not fact.model:
        return ()
    return (Trait(name="BIOS version", value=fact.bios.value, among=fact.model, evidence=fact.bios.evidence),)


AGENT = Agent(
    id="host.virtualization",
    title="Bare metal or virtual",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=Machine,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=_CODES,
    traits=traits,
)
