"""The two hosts beside pve-b: pve-a before anybody tuned it, and pve-c, the same hardware with everything put right."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapline.orchestrator.demo import FLEET
from gapline.orchestrator.layers import layer_entries
from gapline.orchestrator.model.agent import Layer
from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import Run, Verdict
from gapline.orchestrator.snapshot import read
from tests.demo.verdict import codes, fact, findings, of_host, outcome

_UNTUNED = [
    # target, code, severity, severity without the context
    ("pve-a", "acs.redirect", Severity.HIGH, None),
    ("pve-a", "iommu.translated", Severity.HIGH, None),
    ("pve-a", "cpu.governor", Severity.MEDIUM, None),
    ("pve-a", "cpu.driver_acpi", Severity.MEDIUM, None),
    ("pve-a", "idle.deep_states", Severity.MEDIUM, None),
    ("pve-a", "numa.balancing_on", Severity.MEDIUM, None),
    ("pve-a", "next_boot.nodes_not_made", Severity.MEDIUM, None),
    ("pve-a", "numa.little_free", Severity.INFO, Severity.MEDIUM),
    ("pve-a", "kernel.lacks_feature", Severity.INFO, None),
    ("pve-a", "pcie.read_request", Severity.INFO, None),
    ("pve-a/129", "devices.literal_major", Severity.MEDIUM, None),
    ("pve-a/129", "rlimits.open_files", Severity.LOW, None),
    ("pve-a/129", "rlimits.memlock", Severity.INFO, Severity.HIGH),
    ("pve-a/129", "privilege.privileged", Severity.INFO, Severity.LOW),
]

_AS_IT_IS = [
    # target, agent, what its fact holds: neither good nor bad, and told all the same
    ("pve-a", "host.kernel", '"6.8.12-9-pve"'),
    ("pve-a", "host.memory_policy", '"always [madvise] never"'),
    ("pve-a", "host.numa_memory", '"free_kib":2148436'),
    ("pve-a", "host.numa_memory", '"free_kib":21972645'),
    ("pve-a", "host.nvidia_driver", '"580.95.05"'),
    ("pve-a/129", "container.configuration", '"memory: 471040"'),
    ("pve-a/129", "container.cgroup_limits", '"memory_max":{"value":493921239040'),
    ("pve-a/129", "container.cgroup_limits", '/sys/fs/cgroup/lxc/129/ns/memory.max","line":1,"text":"max"'),
    ("pve-a/129", "container.capabilities", '"text":"CapEff:\\t000001fcfdfcffff"'),
    ("pve-a/129", "container.seccomp", '"init":{"mode":"filter","filters":1'),
    ("pve-a/129", "container.apparmor", '"mode":"enforce"'),
    ("pve-a/129", "container.device_nodes", '"path":"/dev/nvidia7","kind":"character special file","major":195'),
    ("pve-a/129", "container.device_nodes", '"mode":"0666"'),
]


@pytest.mark.parametrize(("target", "code", "severity", "base"), _UNTUNED, ids=[code for _, code, _, _ in _UNTUNED])
def test_condition_is_named_at_an_honest_severity(
    run: Run, target: str, code: str, severity: Severity, base: Severity | None
) -> None:
    """What the rule alone would say is shown beside what the evidence makes of it, with the reason."""
    found = next(one for one in findings(run, target) if one.code == code)
    assert found.severity is severity
    assert (found.base_severity or severity) is (base or severity)
    assert bool(found.severity_reason) is (base is not None)
    assert found.evidence
    assert found.remedy.lasting


def test_nothing_else_is_said_about_the_untuned_host(run: Run) -> None:
    """A finding that is not in the table above is new, or false."""
    said = [(target, code) for target in ("pve-a", "pve-a/129") for code in codes(run, target)]
    assert sorted(said) == sorted((target, code) for target, code, _, _ in _UNTUNED)


@pytest.mark.parametrize(("target", "agent", "part"), _AS_IT_IS)
def test_what_is_neither_good_nor_bad_is_told(run: Run, target: str, agent: str, part: str) -> None:
    """The other things that were noted about it stand in the facts, with the line that says so."""
    assert part in fact(run, target, agent)


def test_everything_is_seen_on_both(run: Run) -> None:
    """A verdict on what could not be seen would be none."""
    for entry in (*of_host(run, "pve-a"), *of_host(run, "pve-c")):
        assert entry.status is not Status.UNKNOWN, entry.agent
        assert not entry.unseen, entry.agent


def test_system_and_container_are_cleared_where_everything_was_put_right(run: Run) -> None:
    """Layers 2 and 3 of pve-c, judged as in a run of that host alone."""
    cleared = layer_entries([one for one in run.targets if one.id.startswith("pve-c")], of_host(run, "pve-c"))
    verdicts = {entry.layer: entry.verdict for entry in cleared}
    assert (verdicts[Layer.SYSTEM], verdicts[Layer.CONTAINER]) == (Verdict.CLEARED, Verdict.CLEARED)
    above = [one.code for entry in of_host(run, "pve-c") for one in entry.findings if one.severity is not Severity.INFO]
    assert above == []


def test_the_fixes_are_in_force_and_not_only_asked_for(run: Run) -> None:
    """The facts of pve-c tell what its captures tell."""
    assert '"amd-pstate-epp"' in fact(run, "pve-c", "host.cpu_frequency")
    assert '"6.14.11-4-pve"' in fact(run, "pve-c", "host.kernel")
    assert outcome(run, "pve-c", "host.idle_states").status is Status.PASSED
    assert outcome(run, "pve-c/129", "pair.device_chain").status is Status.PASSED


def test_hardware_of_both_is_the_same() -> None:
    """Processor, memory, GPUs and their slots: what differs is what was tuned."""
    before, after = (read(FLEET).captures(host) for host in ("pve-a", "pve-c"))
    for source in ("command:sed /^$/q /proc/cpuinfo", "script:pci_gpus", "script:pci_links", "file:/proc/devices"):
        assert before[source].out == after[source].out


def test_report_names_every_condition(report: Path) -> None:
    """A reader of the report alone learns of all of them, and why one is less than its rule says."""
    told = report.read_text()
    assert [code for _, code, _, _ in _UNTUNED if code not in told] == []
    assert "holds CAP_IPC_LOCK in the initial user name space" in told
