"""The scripts about boot parameters, CPU activity and tuning services here, in every shell that a target may have."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gapline.agents.host.activity import ACTIVITY, activity
from gapline.agents.host.boot_parameters import BOOT_PARAMETERS, boot_parameters
from gapline.agents.host.tuning.reading import SOURCES as TUNING_SOURCES
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.source import Script

GRUB = """\
GRUB_DEFAULT=0
GRUB_CMDLINE_LINUX_DEFAULT="quiet amd_pstate=active password=hunter2 iommu=pt"
 export GRUB_CMDLINE_LINUX='numa_balancing=disable' # idle=poll
# GRUB_CMDLINE_LINUX="idle=poll"
GRUB_CMDLINE_LINUX_XEN="idle=poll"
"""
ADDED = (
    'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT processor.max_cstate=1"\nGRUB_CMDLINE_LINUX="$(cat x)"\n'
)
ONE_LINE = "root=ZFS=rpool/ROOT/pve-1 boot=zfs pcie_aspm=off api_key=sk-4711 mitigations=http://u:p%40w@host/ iommu=*"


def run(shell: tuple[str, ...], source: Script, text: str) -> Capture:
    """The script's capture; it must succeed and stay silent on standard error."""
    done = subprocess.run([*shell, "-c", text], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return Capture("here", source.key, source.name, done.stdout)


@pytest.fixture
def boot_files(tmp_path: Path) -> str:
    """The script's text, with the boot loaders' files in a folder of this test."""
    (tmp_path / "grub.d").mkdir()
    (tmp_path / "grub").write_text(GRUB)
    (tmp_path / "grub.d" / "gpu.cfg").write_text(ADDED)
    (tmp_path / "cmdline").write_text(ONE_LINE)  # without a line feed, as editors leave it
    text = BOOT_PARAMETERS.text.replace("/etc/default/grub", f"{tmp_path}/grub")
    return text.replace("/etc/kernel/cmdline", f"{tmp_path}/cmdline")


def test_boot_parameters(shell: tuple[str, ...], boot_files: str) -> None:
    """Assignments, additions, quotes and comments of GRUB's shell, and the one line of the other loader."""
    boot = boot_parameters(run(shell, BOOT_PARAMETERS, boot_files))
    assert [(Path(one.file).name, one.line, one.text) for one in boot.asked] == [
        ("grub", 2, "amd_pstate=active"),
        ("grub", 2, "iommu=pt"),
        ("gpu.cfg", 1, "processor.max_cstate=1"),
        ("cmdline", 1, "pcie_aspm=off"),
        ("cmdline", 1, "iommu=*"),
    ]
    assert [one.text.rpartition("|")[2] for one in boot.unread] == ["computed"]
    assert {Path(path).name for path in boot.changed} >= {"grub", "gpu.cfg", "cmdline"}
    assert boot.booted


def test_boot_parameters_leave_no_secret(shell: tuple[str, ...], boot_files: str) -> None:
    """Neither unknown names nor values that could hold credentials."""
    out = run(shell, BOOT_PARAMETERS, boot_files).text
    assert [word for word in ("hunter2", "sk-4711", "http", "rpool", "quiet") if word in out] == []


def test_activity(shell: tuple[str, ...]) -> None:
    """Real counters: the CPUs' time moves, by about the window, and each CPU that is there at the start is there."""
    seen = activity(run(shell, ACTIVITY, ACTIVITY.text.replace("sleep 1", "sleep 0.2")))
    assert 0.5 < seen.seconds < 20
    assert len(seen.frequencies) == 5
    cpus = [name for name in seen.first if name.startswith("/proc/stat:cpu")]
    assert len(cpus) > 1
    assert set(cpus) == {name for name in seen.last if name.startswith("/proc/stat:cpu")}


def test_included_profiles_of_tuned(shell: tuple[str, ...], tmp_path: Path) -> None:
    """The active profile first, then what it includes; other settings and names with a path in them stay behind."""
    script = TUNING_SOURCES["wishes"]
    assert isinstance(script, Script)
    for name, text in {
        "gpu": "[main]\ninclude = balanced, ../../x\n[cpu]\ngovernor=performance\n[script]\nsecret=1\n",
        "balanced": "[cpu]\ngovernor=schedutil|powersave\nenergy_performance_preference=balance_performance\n",
    }.items():
        (tmp_path / "tuned" / name).mkdir(parents=True)
        (tmp_path / "tuned" / name / "tuned.conf").write_text(text)
    (tmp_path / "tuned" / "active_profile").write_text("gpu\n")
    out = run(shell, script, script.text.replace("/etc/", f"{tmp_path}/")).text.replace(str(tmp_path), "")
    assert out.splitlines() == [
        "/tuned/active_profile:1:profile=gpu",
        "/tuned/gpu/tuned.conf:4:governor=performance",
        "/tuned/balanced/tuned.conf:2:governor=schedutil|powersave",
        "/tuned/balanced/tuned.conf:3:energy_performance_preference=balance_performance",
    ]
