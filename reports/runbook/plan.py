"""From a run to the steps of each of its hosts, in the order in which they are safe. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.run import OutcomeEntry, Run, TargetEntry, TargetKind
from gapline.reports.runbook.step import Part, Step

KERNEL, NEXT_BOOT = "host.kernel", "host.next_boot"


@dataclass(frozen=True, slots=True)
class HostPlan:
    """One host and its containers."""

    host: TargetEntry
    loader: str  # "grub", "systemd-boot", or empty where nothing says
    managed_esps: bool  # proxmox-boot-tool keeps copies of kernels on partitions of its own
    next_boot: bool  # somebody looked whether the GPUs will be there after a reboot, and can look again
    steps: tuple[Step, ...]

    def of(self, part: Part) -> tuple[Step, ...]:
        """The steps of one part, the worst first."""
        return tuple(step for step in self.steps if step.part is part)

    @property
    def restarted(self) -> tuple[str, ...]:
        """The containers that restart once, when their steps are done."""
        return tuple(dict.fromkeys(step.target for step in self.of(Part.RESTART) if step.target != self.host.id))

    @property
    def proxmox(self) -> bool:
        """Whether it has Proxmox VE's tools."""
        return self.host.kind is TargetKind.PROXMOX_HOST


@dataclass(frozen=True, slots=True)
class Runbook:
    """The plan of a whole run. `left_out` counts findings of severity info, which ask for nothing."""

    run: Run
    hosts: tuple[HostPlan, ...]
    left_out: int


def runbook(run: Run, target: str | None = None) -> Runbook:
    """All hosts of the run, or one host or container of it, with something to do."""
    entries = [entry for entry in run.outcomes if target is None or _belongs(entry.target, target)]
    chosen = [host for host in run.targets if host.parent is None and any(_of(entry, host) for entry in entries)]
    plans = (_host(run, host, entries) for host in chosen)
    info = sum(not finding.waived and finding.severity is Severity.INFO for e in entries for finding in e.findings)
    return Runbook(run, tuple(plan for plan in plans if plan.steps), info)


def verification(steps: tuple[Step, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """For each target the agents to run again, in the order of the steps."""
    agents: dict[str, list[str]] = {}
    for step in steps:
        of_target = agents.setdefault(step.target, [])
        if step.remedy.verify_agent not in of_target:
            of_target.append(step.remedy.verify_agent)
    return tuple((target, tuple(names)) for target, names in agents.items())


def _host(run: Run, host: TargetEntry, entries: list[OutcomeEntry]) -> HostPlan:
    boot = _boot(run, host)
    steps = sorted((step for entry in entries if _of(entry, host) for step in _steps(entry)), key=lambda one: one.order)
    return HostPlan(
        host=host,
        loader=str(boot.get("loader") or ""),
        managed_esps=boot.get("managed_esps") is True,
        next_boot=any(entry.agent == NEXT_BOOT and entry.target == host.id for entry in run.outcomes),
        steps=tuple(steps),
    )


def _steps(entry: OutcomeEntry) -> Iterator[Step]:
    """Findings with one and the same remedy are one step."""
    by_remedy: dict[object, list[int]] = {}
    for place, finding in enumerate(entry.findings):
        if not finding.waived and finding.severity is not Severity.INFO:
            by_remedy.setdefault((finding.code, finding.remedy), []).append(place)
    for places in by_remedy.values():
        findings = sorted((entry.findings[place] for place in places), key=lambda one: (one.severity.rank, one.subject))
        yield Step(entry.target, entry.agent, tuple(findings))


def _boot(run: Run, host: TargetEntry) -> dict[str, object]:
    """How the host boots, if its kernel was looked at."""
    for entry in run.outcomes:
        if entry.agent == KERNEL and entry.target == host.id and entry.fact is not None:
            boot = entry.fact.read().get("boot")
            return boot if isinstance(boot, dict) else {}
    return {}


def _of(entry: OutcomeEntry, host: TargetEntry) -> bool:
    return entry.target == host.id or entry.target.startswith(f"{host.id}/")


def _belongs(target: str, wanted: str) -> bool:
    return target == wanted or target.startswith(f"{wanted}/")
