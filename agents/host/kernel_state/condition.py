"""Judgements on the kernel itself: what its version lacks here, its clock, its accidents, its mitigations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gapline.agents.host.boot_loader import where
from gapline.agents.host.kernel_state.fact import Kernel
from gapline.agents.host.kernel_state.reading import (
    CLOCK,
    CLOCKS,
    CPUFREQ_DRIVER,
    ONLINE,
    POWER_PROFILE,
    PRESENT,
    SMT,
    TAINT,
)
from gapline.agents.host.kernel_version import older
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="kernel.lacks_feature",
        title="This kernel is older than something this machine could use",
        meaning="The version is judged by what it lacks for this very machine, never by its age. Distributions take "
        "some things over into older kernels.",
    ),
    Code(
        code="kernel.slow_clock",
        title="The kernel does not keep time with the processor's own counter",
        meaning="With tsc programs read the clock without entering the kernel; with hpet or acpi_pm every reading is a "
        "system call that waits for a slow device. The kernel falls back when firmware or sockets disturb the counter.",
    ),
    Code(
        code="kernel.tainted",
        title="The kernel remembers an accident",
        meaning="Bits of kernel.tainted stay set until the next boot: a machine check, an oops, a soft lockup, a "
        "warning (Linux, admin-guide/tainted-kernels.rst). The bits that NVIDIA's modules set are expected.",
    ),
    Code(
        code="kernel.cpus_offline",
        title="CPUs are there and switched off",
        meaning="Somebody or something took them offline, and no work runs on them. With SMT off the second "
        "threads of the cores are meant to be, and are no finding.",
    ),
    Code(
        code="kernel.mitigations_off",
        title="Mitigations against processor vulnerabilities are off",
        meaning="A trade of security for speed that somebody chose. Gapline never proposes it.",
    ),
)
_SERVER_PROFILES = {"4", "5", "7"}  # ACPI: enterprise, small office, performance server
_WITHOUT_SMT = {"off", "forceoff"}
_TURIN = 0x1A
_ZEN = 0x17


@dataclass(frozen=True, slots=True)
class _Accident:
    bit: int
    name: str
    what: str
    severity: Severity


_ACCIDENTS = (
    _Accident(4, "machine check", "a processor reported a machine check", Severity.MEDIUM),
    _Accident(7, "oops", "the kernel had an oops: what the failing thread held may be held for ever", Severity.HIGH),
    _Accident(9, "warning", "the kernel issued a warning", Severity.LOW),
    _Accident(14, "soft lockup", "a CPU was stuck in the kernel for longer than the watchdog allows", Severity.MEDIUM),
)


def condition(fact: Kernel, limits: Limits) -> Iterator[Finding]:
    """Everything about the kernel that is not its command line."""
    yield from _features(fact, limits)
    yield from _clock(fact)
    yield from _accidents(fact)
    yield from _offline(fact)
    yield from _mitigations(fact)


def _features(fact: Kernel, limits: Limits) -> Iterator[Finding]:
    """Where amd_pstate drives the CPUs already, the kernel has what it needs, whatever its number."""
    processor, driver = fact.processor, fact.state(CPUFREQ_DRIVER)
    if processor.virtual or processor.vendor != "AuthenticAMD" or driver != "acpi-cpufreq":
        return
    family = processor.family or 0
    if older(fact.release, since := str(limits["active_mode_since"].value)) and family >= _ZEN:
        what = "amd_pstate in active mode", "Install a newer kernel; host.cpu_frequency says what then to ask for."
        yield _lacks(fact, "amd_pstate active mode", since, what, limits["active_mode_since"].origin)
    elif (
        older(fact.release, since := str(limits["server_default_since"].value))
        and family >= _TURIN
        and fact.state(POWER_PROFILE) in _SERVER_PROFILES
    ):
        ask = f"Write amd_pstate=active into {where(fact.boot)}; no newer kernel is needed for it."
        what = "amd_pstate on servers of this family without being asked", ask
        yield _lacks(fact, "amd_pstate by default", since, what, limits["server_default_since"].origin)


def _lacks(fact: Kernel, subject: str, since: str, what: tuple[str, str], origin: str) -> Finding:
    feature, lasting = what
    return Finding(
        code="kernel.lacks_feature",
        subject=subject,
        severity=Severity.INFO,
        title=f"Kernel {fact.release} does not bring {feature}",
        observed=f"{fact.release}, on {fact.processor.name or 'this processor'}",
        expected=f"{since} or newer, or the remedy",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=(fact.evidence, fact.states[CPUFREQ_DRIVER].evidence),
        origin=origin,
        remedy=Remedy(
            now="Nothing without a reboot.",
            lasting=lasting,
            undo="Boot the former kernel, or take the parameter out again.",
            cost="A reboot. Before it, make sure that the next kernel has an NVIDIA module: dkms status.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent="host.kernel",
        ),
    )


def _clock(fact: Kernel) -> Iterator[Finding]:
    """On bare x86 metal only: guests keep their hypervisor's time, Arm has another counter."""
    clock = fact.states.get(CLOCK)
    x86 = fact.processor.vendor in {"AuthenticAMD", "GenuineIntel"}
    if clock is None or clock.value == "tsc" or fact.processor.virtual or not x86:
        return
    offered = "tsc" in fact.state(CLOCKS).split()
    yield Finding(
        code="kernel.slow_clock",
        subject="clocksource",
        severity=Severity.MEDIUM,
        title=f"The kernel keeps time with {clock.value} instead of tsc",
        observed=f"clocksource {clock.value}; tsc is {'on offer' if offered else 'not on offer, found unstable'}",
        expected="tsc",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(fact.states[path].evidence for path in (CLOCK, CLOCKS) if path in fact.states),
        settled_by="a loop of clock_gettime: some 20 ns with tsc, some microseconds without; and a decode benchmark",
        remedy=Remedy(
            now=f"echo tsc > {CLOCK}" if offered else "dmesg | grep -iE 'tsc|clocksource'   # why it was given up",
            lasting="Update the firmware. Force it with tsc=reliable only if the sockets' counters are known to agree: "
            "a clock that jumps is worse than a slow one.",
            undo=f"echo {clock.value} > {CLOCK}",
            cost="None, if the counters agree.",
            risk=Risk.R1,
            restarts="nothing; a change in the firmware needs a reboot",
            verify_agent="host.kernel",
        ),
    )


def _accidents(fact: Kernel) -> Iterator[Finding]:
    for one in _ACCIDENTS:
        if fact.taint is not None and fact.taint >> one.bit & 1:
            yield Finding(
                code="kernel.tainted",
                subject=one.name,
                severity=one.severity,
                title=f"Since the last boot {one.what}",
                observed=f"kernel.tainted = {fact.taint}, bit {one.bit} is set",
                expected=f"bit {one.bit} clear",
                effect=Effect.DOCUMENTED,
                confidence=Confidence.VERIFIED,
                evidence=(_taint_line(fact),),
                origin="Linux, admin-guide/tainted-kernels.rst",
                remedy=Remedy(
                    now="journalctl -k -b | grep -nE 'Oops|BUG:|WARNING:|soft lockup|mce:|Hardware Error' | head -40",
                    lasting="Repair what the log names: firmware, memory, a module's version. Measure nothing that "
                    "matters before a reboot.",
                    undo="Nothing to undo.",
                    cost="A reboot clears the bit, not the cause.",
                    risk=Risk.R0,
                    restarts="nothing to look; the host to clear it",
                    verify_agent="host.kernel",
                ),
            )


def _taint_line(fact: Kernel) -> Evidence:
    return Evidence(target=fact.evidence.target, source=TAINT, line=1, text=str(fact.taint))


def _offline(fact: Kernel) -> Iterator[Finding]:
    online, present = fact.states.get(ONLINE), fact.states.get(PRESENT)
    if online is None or present is None or online.value == present.value:
        return
    if fact.state(SMT) in _WITHOUT_SMT or fact.processor.virtual:
        return
    limited = [one for one in fact.boot.in_force if one.name in {"maxcpus", "nr_cpus"}]
    yield Finding(
        code="kernel.cpus_offline",
        subject="cpus",
        severity=Severity.LOW,
        title="CPUs are there and switched off",
        observed=f"present {present.value}, online {online.value}" + "".join(f"; {one.text}" for one in limited),
        expected="every CPU that is present online",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(online.evidence, present.evidence, *(one.evidence for one in limited)),
        settled_by="a decode benchmark with all CPUs online",
        remedy=Remedy(
            now="for c in /sys/devices/system/cpu/cpu*/online; do echo 1 > $c; done",
            lasting="Take out what switches them off: maxcpus= or nr_cpus= on the command line, a unit, a tool.",
            undo="echo 0 > /sys/devices/system/cpu/cpuN/online for each that was offline",
            cost="More power.",
            risk=Risk.R1,
            restarts="nothing",
            verify_agent="host.kernel",
        ),
    )


def _mitigations(fact: Kernel) -> Iterator[Finding]:
    off = [one for one in fact.boot.in_force if one.name == "mitigations" and one.text == "mitigations=off"]
    if not off:
        return
    yield Finding(
        code="kernel.mitigations_off",
        subject="mitigations",
        severity=Severity.INFO,
        title="Mitigations against processor vulnerabilities are off",
        observed="mitigations=off on the command line; vulnerable: "
        + (", ".join(name for name, text in fact.mitigations.items() if text.startswith("Vulnerable")) or "not shown"),
        expected="a choice that somebody made and still stands by",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(one.evidence for one in off),
        origin="Linux, admin-guide/kernel-parameters.txt: mitigations=off disables all optional CPU mitigations",
        remedy=Remedy(
            now="Nothing without a reboot.",
            lasting=f"Take it out where guests or containers are not all trusted: {where(fact.boot)}.",
            undo="Put it back and reboot.",
            cost="Work that enters the kernel often becomes slower; GPU work hardly does.",
            risk=Risk.R3,
            restarts="the host",
            verify_agent="host.kernel",
        ),
    )
