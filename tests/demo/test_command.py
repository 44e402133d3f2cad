"""`gapline demo` as a person runs it: a process of its own, in a directory of its own, without SSH set up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gapline.orchestrator.cli.auditing import collect, write
from gapline.orchestrator.cli.demonstrating import loopback
from gapline.orchestrator.cli.selection import Selection, plan_of
from gapline.orchestrator.demo import FLEET
from gapline.orchestrator.run_folder import RunFolder, make
from gapline.orchestrator.transport.ssh.replay_process import serving
from tests.demo.verdict import codes

_SYNTHETIC = "worked example, synthetic data"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Where it is run. The home's ssh_config would break every connection, and nobody may read it."""
    ssh = tmp_path / "home" / ".ssh"
    ssh.mkdir(parents=True)
    (ssh / "config").write_text("Host *\n  ProxyCommand false\n  NoSuchSetting yes\n")
    (ssh / "known_hosts").write_text("not a line of known_hosts\n")
    for name in ("here", "temporary"):
        (tmp_path / name).mkdir()
    return tmp_path / "here"


def _demo(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TMPDIR": str(here.parent / "temporary"), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "gapline", "demo", *arguments]
    return subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False)


def test_shows_cause_repair_and_that_it_is_fixed(here: Path) -> None:
    """In this order, on the terminal; run and report lie in a new directory, and nothing else is left."""
    done = _demo(here)
    assert done.returncode == 0, done.stderr
    told = done.stdout
    order = [_SYNTHETIC, "critical", "504 nvidia-uvm", "c 508:* rwm", "-dev0", "+lxc.cgroup2.devices.allow", "fixed"]
    assert [part for part in order if part not in told] == []
    assert sorted(told.index(part) for part in order) == [told.index(part) for part in order]
    assert {path.name for path in here.iterdir()} == {"gapline-demo"}
    morning, repaired = RunFolder(here / "gapline-demo"), RunFolder(here / "gapline-demo" / "repaired")
    assert codes(morning.read())[0] == "devices.uvm_denied"
    assert "devices.uvm_denied" not in codes(repaired.read())
    for folder in (morning, repaired):
        assert folder.read().run.synthetic
        assert _SYNTHETIC in folder.report.read_text().lower()
    assert list((here.parent / "temporary").iterdir()) == []
    assert not (here.parent / "state").exists()  # the last real run stays the last run
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(here.parent) not in running


def test_never_overwrites_a_run(here: Path) -> None:
    """A named directory with a run is an error; without a name the next free one is taken."""
    (here / "gapline-demo").mkdir()
    (here / "gapline-demo" / "run.json").write_text("mine")
    refused = _demo(here, "gapline-demo")
    assert refused.returncode == 2
    assert "a run lies there already" in refused.stderr
    assert [path.name for path in (here / "gapline-demo").iterdir()] == ["run.json"]
    printed = _demo(here, "--json")
    assert json.loads(printed.stdout)["run"]["synthetic"] is True
    assert (here / "gapline-demo-2" / "report.html").is_file()
    assert (here / "gapline-demo" / "run.json").read_text() == "mine"


def test_client_key_is_in_nothing_that_is_kept(tmp_path: Path) -> None:
    """Neither in the run nor in the report, the log or the snapshot; and its own copy is gone."""
    folder = make(tmp_path / "run")
    with serving(FLEET) as server:
        identity = server.folder / "identity"
        assert identity.stat().st_mode & 0o077 == 0
        assert server.folder.stat().st_mode & 0o077 == 0
        secret = [line for line in identity.read_text().splitlines() if not line.startswith("-")]
        plan = plan_of(Selection(targets=(), fleet=None), (server.host("pve-b"),))
        write(collect(plan, folder, synthetic=True, ways=loopback), folder)
    assert not identity.exists()
    kept = [path for path in folder.path.rglob("*") if path.is_file()]
    assert len(kept) > 10
    for path in kept:
        content = path.read_text()
        assert not [line for line in secret if line in content], path
        assert "PRIVATE KEY" not in content
