"""The incident, played for real: a reboot moves nvidia-uvm's major, CUDA is dead in one container, and the fix holds.

One story in the order in which it happens; each test is a chapter and needs those before it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.run import Run, TargetKind
from tests.lab.auditor import Auditor, Door, findings, outcome
from tests.lab.lxc.container import LabContainer, proxmox_config
from tests.lab.vm.lab import CAPS_FIRST, UVM_FIRST, VmLab

pytestmark = [pytest.mark.lab, pytest.mark.slow]

RULES = ("c 195:* rwm", "c {uvm}:* rwm")
NODES = ("nvidia0", "nvidiactl", "nvidia-uvm")
PRIVILEGED = LabContainer(name="129", allowed=RULES, nodes=NODES)
UNPRIVILEGED = LabContainer(name="130", allowed=RULES, nodes=NODES, unprivileged=True)
DENIED, CHAIN, NODES_AGENT = "devices.uvm_denied", "pair.device_chain", "container.device_nodes"


class Story:
    """What later chapters know of earlier ones."""

    def __init__(self, lab: VmLab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.major_before = 0

    def auditor(self, chapter: str) -> Auditor:
        """A laptop with an empty state for each chapter."""
        folder = self.folder / chapter
        folder.mkdir(exist_ok=True)
        return Auditor(Door(self.lab.ssh_port, self.lab.identity, self.lab.known_hosts), folder)

    def opens(self, container: LabContainer, node: str) -> str:
        """The error of an open inside the container; empty when it succeeds."""
        return self.lab.try_ssh(f"lxc-attach -n {container.name} -- sh -c 'true <>/dev/{node}'").stderr


@pytest.fixture(scope="module")
def story(vm_lab: VmLab, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The host in its first life: an administrator writes today's major into both configurations and starts them."""
    told = Story(vm_lab, tmp_path_factory.mktemp("incident"))
    vm_lab.boot(order=UVM_FIRST)
    told.major_before = vm_lab.major("nvidia-uvm")
    for container in (PRIVILEGED, UNPRIVILEGED):
        config = proxmox_config(container).replace("{uvm}", str(told.major_before))
        vm_lab.ssh(f"cat > /etc/pve/lxc/{container.name}.conf", "onboot: 1\n" + config)
        vm_lab.ssh(f"systemctl start pve-container@{container.name}")
    return told


def test_first_life_works(story: Story) -> None:
    """Every node opens in both containers: these are real drivers, and the policy allows them."""
    for container in (PRIVILEGED, UNPRIVILEGED):
        assert [story.opens(container, node) for node in NODES] == ["", "", ""]
    run = story.auditor("first").audit()
    assert run.targets[0].kind is TargetKind.PROXMOX_HOST
    assert findings(run, "lab/129", DENIED) == []
    assert findings(run, "lab/129", "devices.literal_major"), "today's major, written down: it will break one day"


def test_second_life_is_the_incident(story: Story) -> None:
    """Another dynamic device registers first: only the privileged container loses nvidia-uvm."""
    story.lab.boot(order=CAPS_FIRST)
    assert story.lab.major("nvidia-uvm") != story.major_before
    assert story.lab.major("nvidia-caps") == story.major_before
    assert "Operation not permitted" in story.opens(PRIVILEGED, "nvidia-uvm")
    assert [story.opens(PRIVILEGED, node) for node in ("nvidia0", "nvidiactl")] == ["", ""]
    assert [story.opens(UNPRIVILEGED, node) for node in NODES] == ["", "", ""]


def test_audit_finds_it_and_the_twin_stays_silent(story: Story) -> None:
    """Critical, with the driver's line beside the configuration's; nothing about the unprivileged container."""
    run = story.auditor("second").audit("--agent", CHAIN, "--agent", NODES_AGENT)
    (found,) = findings(run, "lab/129", DENIED)
    assert found.severity is Severity.CRITICAL
    read = {line.text for line in found.evidence}
    assert f"{story.lab.major('nvidia-uvm')} nvidia-uvm" in read
    assert f"lxc.cgroup2.devices.allow: c {story.major_before}:* rwm" in read
    assert_silent(run)


def test_printed_diff_is_the_cure(story: Story) -> None:
    """Patched as printed, restarted as printed, run again as printed: fixed, and the node opens."""
    auditor = story.auditor("second")
    (found,) = findings(auditor.run(), "lab/129", DENIED)
    story.lab.ssh("patch /etc/pve/lxc/129.conf", found.remedy.diff)
    story.lab.ssh("systemctl restart pve-container@129")
    changed = auditor.rerun(CHAIN, "lab/129")
    assert {change["code"]: change["state"] for change in changed}[DENIED] == "fixed"
    assert story.opens(PRIVILEGED, "nvidia-uvm") == ""
    assert findings(auditor.run(), "lab/129", DENIED) == []


def test_third_life_still_works(story: Story) -> None:
    """The order changes back and the major with it; a rule by path follows."""
    story.lab.boot(order=UVM_FIRST)
    assert story.lab.major("nvidia-uvm") == story.major_before
    assert story.opens(PRIVILEGED, "nvidia-uvm") == ""


def assert_silent(run: Run) -> None:
    """Nothing about the devices of the unprivileged twin."""
    assert outcome(run, "lab/130", CHAIN).status is Status.PASSED
    assert outcome(run, "lab/130", NODES_AGENT).status is Status.PASSED
