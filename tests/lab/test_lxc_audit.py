"""`gapline audit` over SSH against real containers: what it must find, pass, and say it could not see."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapline.orchestrator.model.finding import Confidence, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.run import Run, TargetKind
from tests.lab.auditor import Auditor, Door, findings, outcome
from tests.lab.conftest import require_lxc
from tests.lab.lxc import fleet
from tests.lab.lxc.container import LabContainer
from tests.lab.lxc.lab import LxcLab
from tests.lab.lxc.stand_in import STALE_MAJOR

pytestmark = pytest.mark.lab

DENIED = "devices.uvm_denied"
CHAIN = "pair.device_chain"


def auditor_of(lab: LxcLab, folder: Path) -> Auditor:
    """Somebody with the lab's key, in the lab's network."""
    return Auditor(Door(lab.ssh_port, lab.identity, lab.known_hosts, lab.netns_command), folder)


@pytest.fixture(scope="module")
def run(lxc_lab: LxcLab, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One audit of the whole host, judged by many tests."""
    return auditor_of(lxc_lab, tmp_path_factory.mktemp("laptop")).audit()


@pytest.fixture
def repaired(tmp_path: Path) -> Iterator[tuple[LxcLab, Auditor]]:
    """A host of its own with the stale container and its twin, audited, for tests that change it."""
    require_lxc()
    with LxcLab((fleet.STALE, fleet.STALE_UNPRIVILEGED)) as lab:
        auditor = auditor_of(lab, tmp_path)
        assert findings(auditor.audit(), target(fleet.STALE), DENIED)
        yield lab, auditor


def target(container: LabContainer) -> str:
    """The container's name in a run."""
    return f"lab/{container.name}"


def test_host_is_proxmox_and_read_over_one_connection(run: Run) -> None:
    """One connection, at most three sessions for the host and its containers together."""
    host = next(entry for entry in run.targets if entry.id == "lab")
    assert host.kind is TargetKind.PROXMOX_HOST
    assert host.connections == 1
    assert host.sessions <= 3


def test_stale_major_is_found_with_both_lines(lxc_lab: LxcLab, run: Run) -> None:
    """Critical, verified inside, and the driver's line stands beside the configuration's."""
    (found,) = findings(run, target(fleet.STALE), DENIED)
    assert (found.severity, found.confidence) == (Severity.CRITICAL, Confidence.VERIFIED)
    read = {line.text for line in found.evidence}
    assert f"{lxc_lab.uvm_major} nvidia-uvm" in read
    assert f"lxc.cgroup2.devices.allow: c {STALE_MAJOR}:* rwm" in read


def test_busybox_does_not_hide_it(run: Run) -> None:
    """Where the container's own shell would call the node readable, the rules still tell."""
    (found,) = findings(run, target(fleet.STALE_BUSYBOX), DENIED)
    assert found.severity is Severity.CRITICAL
    assert outcome(run, target(fleet.STALE_BUSYBOX), "container.device_nodes").status is Status.UNKNOWN


@pytest.mark.parametrize(
    "container",
    [fleet.RIGHT, fleet.RIGHT_BUSYBOX, fleet.FROZEN, fleet.WITHOUT_SHELL],
    ids=lambda container: container.name,
)
def test_right_major_raises_no_alarm(run: Run, container: LabContainer) -> None:
    """Nothing critical or high about a container whose rules are right, whether it could be entered or not."""
    serious = [f.code for e in run.outcomes if e.target == target(container) for f in e.findings if f.severity.rank < 2]
    assert serious == []


def test_unprivileged_twin_stays_silent(run: Run) -> None:
    """The same stale line blocks nothing there, and nothing is said about its devices."""
    assert outcome(run, target(fleet.STALE_UNPRIVILEGED), CHAIN).status is Status.PASSED
    assert outcome(run, target(fleet.STALE_UNPRIVILEGED), "container.device_nodes").status is Status.PASSED


def test_container_without_gpu_is_listed_and_not_audited(run: Run) -> None:
    """The DNS container raises nothing."""
    listed = next(entry for entry in run.targets if entry.id == target(fleet.WITHOUT_GPU))
    assert not listed.audited
    assert [entry for entry in run.outcomes if entry.target == target(fleet.WITHOUT_GPU)] == []


@pytest.mark.parametrize(
    ("container", "kind", "words"),
    [
        (fleet.STOPPED, ProblemKind.NOT_RUNNING, "not running"),
        (fleet.FROZEN, ProblemKind.NOT_ENTERED, "frozen"),
        (fleet.WITHOUT_SHELL, ProblemKind.NOT_ENTERED, "/bin/sh"),
    ],
    ids=["stopped", "frozen", "no shell"],
)
def test_who_cannot_be_entered_is_a_typed_problem(
    run: Run, container: LabContainer, kind: ProblemKind, words: str
) -> None:
    """Never a finding, never "fine", and in words that say which of the three it is."""
    seen = outcome(run, target(container), "container.device_nodes")
    assert seen.status is Status.UNKNOWN
    assert seen.problem is not None
    assert seen.problem.kind is kind
    assert words in seen.problem.detail


def test_live_fix_is_seen_by_rerun(repaired: tuple[LxcLab, Auditor]) -> None:
    """The command that the finding prints, then `gapline rerun`: fixed."""
    lab, auditor = repaired
    lab.run("lxc-cgroup", "-n", fleet.STALE.name, "devices.allow", f"c {lab.uvm_major}:* rwm")
    states = {change["code"]: change["state"] for change in auditor.rerun(CHAIN, target(fleet.STALE))}
    assert states[DENIED] == "fixed"


def test_printed_diff_repairs_for_good(repaired: tuple[LxcLab, Auditor]) -> None:
    """`patch` takes the diff, the container restarts, and `gapline rerun` says fixed and nothing new."""
    lab, auditor = repaired
    (found,) = findings(auditor.run(), target(fleet.STALE), DENIED)
    subprocess.run(("patch", str(lab.config(fleet.STALE.name))), input=found.remedy.diff, text=True, check=True)
    lab.restart(fleet.STALE.name)
    states = {change["code"]: change["state"] for change in auditor.rerun(CHAIN, target(fleet.STALE))}
    assert states[DENIED] == "fixed"
    assert "new" not in states.values()
    assert lab.inside(fleet.STALE.name, "test -r /dev/nvidia-uvm && test -w /dev/nvidia-uvm").returncode == 0


def test_plain_lxc_host(plain_lab: LxcLab, tmp_path: Path) -> None:
    """Without Proxmox the unprivileged container is blocked too, and found."""
    run = auditor_of(plain_lab, tmp_path).audit()
    assert run.targets[0].kind is TargetKind.LINUX_HOST
    assert findings(run, target(fleet.PLAIN_STALE), DENIED)
    assert findings(run, target(fleet.PLAIN_RIGHT), DENIED) == []


def test_planted_secrets_stay_where_they_are(tmp_path: Path) -> None:
    """A token in the container's environment and one in its notes: in no capture, no run, no report, no log."""
    require_lxc()
    planted = "hf_Qv7PlantedInTheLab31337"
    with LxcLab((fleet.RIGHT,)) as lab:
        config = lab.config(fleet.RIGHT.name)
        config.write_text(f"#API key%3A {planted}\n{config.read_text()}lxc.environment: HF_TOKEN={planted}\n")
        lab.restart(fleet.RIGHT.name)
        assert planted in lab.inside(fleet.RIGHT.name, "cat /proc/1/environ").stdout
        auditor_of(lab, tmp_path).audit()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if planted.encode() in path.read_bytes()] == []


def test_no_process_is_left_on_the_host_and_none_in_a_container(lxc_lab: LxcLab, run: Run) -> None:
    """After an audit only what was there before runs: no script, no time-out guard, no lxc-attach."""
    assert run.summary.audited > 0
    running = lxc_lab.run("ps", "-eo", "args").stdout
    for leftover in ("sh -s", "lxc-attach", "timeout"):
        assert leftover not in running
