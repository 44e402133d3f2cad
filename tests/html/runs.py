"""Runs as an audit would write them, built with the real model. All names, addresses and numbers are invented."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from gapline.orchestrator.model.capture import Line
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Remedy, Risk, Severity, fingerprint
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import (
    Header,
    LayerEntry,
    OutcomeEntry,
    ReportedFinding,
    Run,
    Summary,
    TargetEntry,
    TargetKind,
    Times,
)

STARTED = datetime(2026, 3, 3, 6, 12, 4, tzinfo=UTC)
CONFIG = "/etc/pve/lxc/129.conf"
CONFIG_LINES = (
    "arch: amd64",
    "cores: 32",
    "hostname: vllm-a",
    "memory: 262144",
    "ostype: debian",
    "rootfs: tank:subvol-129-disk-0,size=400G",
    "lxc.cgroup2.devices.allow: c 195:* rwm",
    "lxc.cgroup2.devices.allow: c 509:* rwm",
    "lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,optional,create=file",
    "lxc.mount.entry: /dev/nvidiactl dev/nvidiactl none bind,optional,create=file",
    "lxc.mount.entry: /dev/nvidia-uvm dev/nvidia-uvm none bind,optional,create=file",
)
DIFF = """\
--- a/etc/pve/lxc/129.conf
+++ b/etc/pve/lxc/129.conf
@@ -6,6 +6,6 @@
 rootfs: tank:subvol-129-disk-0,size=400G
-lxc.cgroup2.devices.allow: c 195:* rwm
-lxc.cgroup2.devices.allow: c 509:* rwm
+dev0: /dev/nvidia0,mode=0666
+dev1: /dev/nvidiactl,mode=0666
+dev2: /dev/nvidia-uvm,mode=0666
 lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,optional,create=file
"""


def config_around(target: str, source: str, line: int) -> tuple[Line, ...]:
    """The context that a snapshot would give for container 129's configuration; nothing for other sources."""
    if source != CONFIG:
        return ()
    numbers = range(max(1, line - 2), min(len(CONFIG_LINES), line + 2) + 1)
    return tuple(Line(target, source, number, CONFIG_LINES[number - 1]) for number in numbers)


def evidence(target: str, source: str, line: int | None, text: str) -> Evidence:
    """A cited line."""
    return Evidence(target=target, source=source, line=line, text=text)


def remedy(**fields: Any) -> Remedy:
    """A complete remedy, with what a case wants to be different."""
    usual: dict[str, Any] = {
        "now": "Run `sysctl -w kernel.numa_balancing=0` on the host.",
        "lasting": "Put `kernel.numa_balancing = 0` into `/etc/sysctl.d/90-inference.conf`.",
        "undo": "`sysctl -w kernel.numa_balancing=1`, and remove the file.",
        "cost": "Processes that are bound to no node may get slower.",
        "risk": Risk.R1,
        "restarts": "nothing",
        "verify_agent": "host.numa_balancing",
    }
    return Remedy(**(usual | fields))


def finding(target: str, code: str, subject: str, **fields: Any) -> ReportedFinding:
    """A complete finding, with what a case wants to be different."""
    usual: dict[str, Any] = {
        "severity": Severity.MEDIUM,
        "title": f"{subject} is not as it should be",
        "observed": "1",
        "expected": "0",
        "effect": Effect.PLAUSIBLE,
        "settled_by": "`gapline bench decode` with and without it",
        "confidence": Confidence.VERIFIED,
        "evidence": (evidence(target, "/proc/sys/kernel/numa_balancing", 1, "1"),),
        "remedy": remedy(),
    }
    marks = {"code": code, "subject": subject, "fingerprint": fingerprint(target, code, subject)}
    return ReportedFinding(**(usual | marks | fields))


def outcome(target: str, agent: str, status: Status = Status.PASSED, **fields: Any) -> OutcomeEntry:
    """A complete outcome; when it was collected follows from the agent's name, so that runs are reproducible."""
    spread = sum(agent.encode() + target.encode()) % 100 / 100
    layer = {"host": 2, "container": 3, "pair": 3}.get(agent.split(".", 1)[0], 2)
    usual: dict[str, Any] = {
        "title": agent.split(".", 1)[-1].replace("_", " ").capitalize(),
        "layer": layer,
        "reason": "Everything was seen and is as it should be.",
        "problem": None,
        "unseen": (),
        "times": Times(planned=0.02, collected=0.4 + spread, judged=0.41 + spread),
        "snapshot": 0,
        "age": 0,
        "fact": None,
        "findings": (),
    }
    return OutcomeEntry(target=target, agent=agent, status=status, **(usual | fields))


def target(identity: str, kind: TargetKind, **fields: Any) -> TargetEntry:
    """A complete target, audited and reached unless a case wants otherwise."""
    usual: dict[str, Any] = {
        "parent": identity.rpartition("/")[0] or None,
        "route": "ssh",
        "name": identity,
        "boot_id": "5b0c3f0e-8f5e-4c5e-9a63-0d8f3a1f9c11",
        "uptime_seconds": 5_760.0,
        "privilege": "root",
        "load": (0.62, 0.71, 0.55),
        "clock_skew_seconds": 0.04,
        "audited": True,
        "reason": "",
        "problem": None,
        "connections": 1,
        "sessions": 3,
    }
    return TargetEntry(id=identity, kind=kind, **(usual | fields))


def run(
    targets: tuple[TargetEntry, ...],
    outcomes: tuple[OutcomeEntry, ...],
    layers: tuple[LayerEntry, ...] = (),
    *,
    synthetic: bool = False,
    **fields: Any,
) -> Run:
    """A run whose summary counts what it holds."""
    findings = [one for entry in outcomes for one in entry.findings if not one.waived]
    first = sorted(findings, key=lambda one: one.severity.rank)[:5]
    summary = Summary(
        targets=len(targets),
        audited=sum(one.audited for one in targets),
        findings={level: sum(one.severity is level for one in findings) for level in Severity},
        statuses={status: sum(entry.status is status for entry in outcomes) for status in Status},
        first=tuple(one.fingerprint for one in first if one.severity.rank <= Severity.MEDIUM.rank),
        exit_code=1 if findings else 0,
    )
    header = Header(
        id="20260303-061204-7c1e",
        started=STARTED,
        finished=STARTED + timedelta(seconds=3.9),
        gapline="0.1.0",
        playbook="full",
        fail_on="high",
        synthetic=synthetic,
        snapshots=("runs/20260303-061204-7c1e/snapshot",),
    )
    whole = Run(run=header, targets=targets, outcomes=outcomes, layers=layers, summary=summary)
    return whole.model_copy(update=fields)
