"""The verdict follows the captures: nothing about the example is known to the code."""

from __future__ import annotations

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status
from tests.demo.conftest import Audit
from tests.demo.fleet import Fleet
from tests.demo.verdict import codes, fact, findings, outcome

_STALE, _RIGHT = "devices.allow: c 508:", "devices.allow: c 504:"


def test_right_major_in_the_file_alone(fleet: Fleet, audit: Audit) -> None:
    """One byte: the file is right, the running policy is not, and the verdict says so."""
    fleet.replace(_STALE, _RIGHT, only="configuration.txt")
    first = findings(audit(fleet), "pve-b/129")[0]
    assert first.code == "devices.uvm_denied"
    assert "not in force" in first.title
    assert "508" not in first.title


def test_right_major_in_force(fleet: Fleet, audit: Audit) -> None:
    """The container works: what remains is that a literal major will not stay right."""
    fleet.replace(_STALE, _RIGHT)
    fleet.replace(_STALE.replace(":", " =", 1), _RIGHT.replace(":", " =", 1))
    fleet.replace("char|nn", "char|yy", only="access-test.txt")
    fleet.replace("Operation not permitted", "ok", only="access-test.txt")
    run = audit(fleet)
    assert not [one for one in findings(run, "pve-b/129") if one.severity in {Severity.CRITICAL, Severity.HIGH}]
    assert codes(run, "pve-b/129") == ["devices.literal_major", "privilege.privileged"]


def test_access_alone(fleet: Fleet, audit: Audit) -> None:
    """Somebody has repaired the running policy by hand: it works until the next start."""
    fleet.replace("char|nn", "char|yy", only="access-test.txt")
    fleet.replace("Operation not permitted", "ok", only="access-test.txt")
    assert "devices.denied_at_next_start" in codes(audit(fleet), "pve-b/129")


def test_other_number(fleet: Fleet, audit: Audit) -> None:
    """129 becomes 417, and every word about it follows."""
    fleet.rename("129", "417")
    run = audit(fleet)
    first = findings(run)[0]
    assert (first.code, findings(run, "pve-b/417")[0]) == ("devices.uvm_denied", first)
    assert {line.source for line in first.evidence} >= {"/proc/devices", "/etc/pve/lxc/417.conf"}
    assert "pct set 417" in first.remedy.lasting
    assert "129" not in first.model_dump_json(exclude={"fingerprint"})


def test_other_driver_major(fleet: Fleet, audit: Audit) -> None:
    """The driver got 503 this morning: in the host's table, and as 1f7 on the nodes."""
    fleet.replace("504 nvidia-uvm", "503 nvidia-uvm")
    fleet.replace("|1f8|", "|1f7|")
    first = findings(audit(fleet))[0]
    assert first.code == "devices.uvm_denied"
    assert 'devices.allow "c 503:* rwm"' in first.remedy.now


def test_stale_node(fleet: Fleet, audit: Audit) -> None:
    """The node in the container keeps last week's major: another cause, another verdict."""
    fleet.replace("|1f8|", "|1fc|", only="nodes.txt")
    assert "devices.node_stale" in codes(audit(fleet), "pve-b/129")


def test_other_bus_ids(fleet: Fleet, audit: Audit) -> None:
    """A card in another slot."""
    for old, new in (("0000:91:00.0", "0000:a1:00.0"), ("0000:90:01.1", "0000:a0:01.1"), ("pci0000:90", "pci0000:a0")):
        fleet.replace(old, new)
    run = audit(fleet)
    for agent in ("host.nvidia_driver", "host.pcie"):
        assert "0000:a1:00.0" in fact(run, "pve-b", agent)
        assert "0000:91:00.0" not in fact(run, "pve-b", agent)
    assert codes(run)[0] == "devices.uvm_denied"


def test_six_gpus(fleet: Fleet, audit: Audit) -> None:
    """Two cards were taken out, and from the container's configuration too: nothing is missed."""
    fleet.take_out("0000:41:00.0", "0000:61:00.0")
    fleet.drop("0000:40:01.1", "0000:60:01.1", "/dev/nvidia6", "/dev/nvidia7")
    run = audit(fleet)
    assert fact(run, "pve-b", "host.nvidia_driver").count('"model"') == 6
    assert outcome(run, "pve-b", "host.nvidia_driver").status is Status.PASSED
    assert [one.code for one in findings(run) if one.severity is Severity.CRITICAL] == ["devices.uvm_denied"]


def test_lost_gpu(fleet: Fleet, audit: Audit) -> None:
    """One card is on the bus, and the driver does not list it."""
    fleet.drop("/proc/driver/nvidia/gpus/0000:61:00.0/")
    lost = [one for one in findings(audit(fleet)) if one.code == "nvidia.gpu_lost"]
    assert [one.subject for one in lost] == ["0000:61:00.0"]
