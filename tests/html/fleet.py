"""Large runs: many machines that share faults, and machines that never stop talking."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.finding import Effect, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import (
    LayerEntry,
    OutcomeEntry,
    ReportedFinding,
    Run,
    TargetEntry,
    TargetKind,
    Verdict,
)
from tests.html.runs import evidence, finding, outcome, remedy, run, target

AGENTS = ("cpu_frequency", *(f"question_{letter}" for letter in "abcdefghijklmn"))
THREADS = 128


def fleet(hosts: int) -> Run:
    """Hosts with two containers each, in the way real fleets differ: the same fault on many, a few odd ones."""
    names = [f"gpu-{number:02d}" for number in range(1, hosts + 1)]
    targets = tuple(one for name in names for one in _machines(name))
    outcomes = tuple(one for index, name in enumerate(names) for one in _answers(name, index))
    layers = tuple(
        LayerEntry(layer=layer, verdict=Verdict.SUSPECT, reason="Seen on several hosts.") for layer in (2, 3)
    )
    return run(targets, outcomes, layers)


def _machines(name: str) -> Iterator[TargetEntry]:
    yield target(name, TargetKind.PROXMOX_HOST)
    for number in (101, 102):
        yield target(f"{name}/{number}", TargetKind.LXC_CONTAINER, name=f"vllm-{number}", reason="names major 195")


def _answers(name: str, index: int) -> Iterator[OutcomeEntry]:
    facts = {"threads": [{"cpu": cpu, "mhz": 2400 + cpu, "governor": "schedutil"} for cpu in range(THREADS)]}
    for agent in AGENTS:
        findings = (governor(name),) if agent == "cpu_frequency" and index % 3 else ()
        status = Status.FOUND if findings else Status.PASSED
        yield outcome(name, f"host.{agent}", status, fact=facts, findings=findings)
    for number in (101, 102):
        yield from _inside(f"{name}/{number}", index)


def _inside(name: str, index: int) -> Iterator[OutcomeEntry]:
    yield outcome(name, "container.config", fact={"cores": 32, "privileged": True})
    blind = Problem(kind=ProblemKind.DENIED, detail=f"{name}: /proc/1/root: denied", hint="Grant `sudo -n cat`.")
    yield outcome(name, "container.limits", Status.UNKNOWN, reason="", problem=blind)
    if index % 7:
        yield outcome(name, "pair.device_chain")
    else:
        yield outcome(name, "pair.device_chain", Status.FOUND, findings=(denied(name),))


def governor(name: str) -> ReportedFinding:
    """The same on every host, apart from where it is."""
    path = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
    return finding(
        name,
        "cpu.governor_dynamic",
        "policy0-127",
        title="The CPU governor is schedutil",
        effect=Effect.DOCUMENTED,
        settled_by="",
        origin="Linux, Documentation/admin-guide/pm/cpufreq.rst",
        evidence=(evidence(name, path, 1, "schedutil"),),
    )


def denied(name: str) -> ReportedFinding:
    """A critical one whose remedy names the container."""
    host, _, number = name.partition("/")
    return finding(
        name,
        "devices.uvm_denied",
        "/dev/nvidia-uvm",
        severity=Severity.CRITICAL,
        title="CUDA cannot start",
        effect=Effect.BREAKS,
        settled_by="",
        evidence=(evidence(host, "/proc/devices", 41, "511 nvidia-uvm"), evidence(name, "config", 8, "c 509:* rwm")),
        remedy=remedy(now=f'`lxc-cgroup -n {number} devices.allow "c 511:* rwm"`'),
    )


def talkative(hosts: int, findings: int) -> Run:
    """Hosts that fill every field of very many findings."""
    names = [f"loud-{number:02d}" for number in range(1, hosts + 1)]
    targets = tuple(target(name, TargetKind.LINUX_HOST) for name in names)
    return run(targets, tuple(_shout(name, findings) for name in names))


def _shout(name: str, findings: int) -> OutcomeEntry:
    noise = "<&\"'>" * 2_000
    lines = tuple(evidence(name, f"/proc/{number}", number, noise[:500]) for number in range(1, 40))
    every = tuple(
        finding(
            name, "x.loud", f"{number} {noise}", title=noise, observed=noise, evidence=lines, remedy=remedy(now=noise)
        )
        for number in range(findings)
    )
    fact = {f"key{number}": noise for number in range(500)}
    return outcome(name, "host.loud", Status.FOUND, reason=noise, fact=fact, findings=every)


def endless_context(target_id: str, source: str, line: int) -> tuple[Line, ...]:
    """A snapshot that always has more lines to offer."""
    return tuple(Line(target_id, source, number, "<" * 5_000) for number in range(max(1, line - 20), line + 20))
