"""The worked example as it stands: what the audit says, and what it keeps quiet about."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from gapline.orchestrator.cli.registry import all_agents
from gapline.orchestrator.demo import FLEET, REPAIRED
from gapline.orchestrator.model.agent import Scope
from gapline.orchestrator.model.finding import Effect, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import Run
from gapline.orchestrator.plan import all_sources
from gapline.orchestrator.snapshot import read
from tests.demo.verdict import codes, findings, outcome


def test_first_finding_names_the_cause_with_both_raw_lines(run: Run) -> None:
    """The driver's major today beside the rule that names last week's."""
    first = findings(run)[0]
    assert (first.code, first.severity, first.effect) == ("devices.uvm_denied", Severity.CRITICAL, Effect.BREAKS)
    cited = {(line.target, line.source, line.text) for line in first.evidence}
    assert ("pve-b", "/proc/devices", "504 nvidia-uvm") in cited
    assert ("pve-b/129", "/etc/pve/lxc/129.conf", "lxc.cgroup2.devices.allow: c 508:* rwm") in cited
    assert any("Operation not permitted" in text for _, _, text in cited)


def test_first_finding_brings_the_diff_and_the_lasting_form(run: Run) -> None:
    """What to do now, the corrected file, and the entries that no renumbering can break."""
    remedy = findings(run)[0].remedy
    assert "-lxc.cgroup2.devices.allow: c 508:* rwm" in remedy.diff
    assert "-dev0 /dev/nvidia-uvm" in remedy.lasting
    assert 'devices.allow "c 504:* rwm"' in remedy.now


def test_only_the_privileged_container_is_accused(run: Run) -> None:
    """The unprivileged twin has the same stale lines, and they block nothing there."""
    twin = FLEET / "pve-b" / "130" / "configuration.txt"
    assert "lxc.cgroup2.devices.allow: c 508:* rwm" in twin.read_text()
    assert codes(run, "pve-b/130") == []
    assert outcome(run, "pve-b/130", "pair.device_chain").status is Status.PASSED


def test_nvidia_smi_works_where_cuda_does_not(run: Run) -> None:
    """Major 195 is allowed, so no other node of container 129 is accused."""
    assert codes(run, "pve-b/129") == ["devices.uvm_denied", "devices.over_permission", "privilege.privileged"]


def test_stopped_container_is_neither_fine_nor_faulty(run: Run) -> None:
    """131 has GPUs in its configuration and does not run."""
    target = next(entry for entry in run.targets if entry.id == "pve-b/131")
    assert target.audited
    assert "stopped" in target.reason
    assert codes(run, "pve-b/131") == []
    assert outcome(run, "pve-b/131", "pair.device_chain").status is Status.UNKNOWN


def test_container_without_a_gpu_is_listed_and_silent(run: Run) -> None:
    """105 is a name server."""
    target = next(entry for entry in run.targets if entry.id == "pve-b/105")
    assert not target.audited
    assert not [entry for entry in run.outcomes if entry.target == "pve-b/105"]


def test_host_has_findings_of_its_own_and_fine_gpus(run: Run) -> None:
    """Governor and NUMA balancing are worth a word; the driver is not to blame."""
    assert {"cpu.governor", "numa.balancing_on"} <= set(codes(run, "pve-b"))
    assert outcome(run, "pve-b", "host.nvidia_driver").status is Status.PASSED


def test_run_says_that_it_is_synthetic(run: Run) -> None:
    """And so does the snapshot that it was made from."""
    assert run.run.synthetic
    assert read(FLEET).synthetic
    assert read(REPAIRED).synthetic


def test_one_connection_and_three_sessions(run: Run) -> None:
    """For a host with three GPU containers."""
    host = next(entry for entry in run.targets if entry.id == "pve-b")
    assert host.connections == 1
    assert 1 <= host.sessions <= 3


def test_every_source_of_every_agent_is_answered() -> None:
    """An agent that reads something new needs it in these captures, or there that it is missing."""
    fleet = read(FLEET)
    for target in ("pve-a", "pve-a/129", "pve-b", "pve-b/129", "pve-b/130", "pve-c", "pve-c/129"):
        wanted = all_sources(all_agents(), Scope.CONTAINER if "/" in target else Scope.HOST)
        assert {source.key for source in wanted} - fleet.captures(target).keys() == set()


def test_repaired_configuration_is_the_diff_applied(run: Run, tmp_path: Path) -> None:
    """What the second act shows is what the remedy of the first asked for."""
    before, after = (path / "pve-b" / "129" / "configuration.txt" for path in (FLEET, REPAIRED))
    changed = Path(shutil.copy(before, tmp_path / "129.conf"))
    subprocess.run(["patch", "--fuzz=0", changed], input=findings(run)[0].remedy.diff, text=True, check=True)
    assert changed.read_text() == after.read_text()
