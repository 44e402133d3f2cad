"""Three hosts that are meant alike, one with another kernel: audited over SSH, replayed, repaired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gapline.orchestrator.demo import FLEET
from gapline.orchestrator.model.run import Run
from gapline.orchestrator.snapshot import SnapshotWriter, read
from gapline.orchestrator.transport.ssh.replay_process import serving
from tests.cli.command_line import CommandLine

pytestmark = pytest.mark.ssh
RELEASE = "file:/proc/sys/kernel/osrelease"
OLD, NEW = "6.8.12-9-pve", "6.14.11-4-pve"
CODE, AGENT = "fleet.odd_host", "fleet.odd_one_out"


def record(path: Path, releases: Mapping[str, str]) -> Path:
    """A snapshot of hosts that are pve-b of the worked example but for their names and kernels."""
    writer = SnapshotWriter(path, version="0", created=datetime(2026, 11, 30, tzinfo=UTC), synthetic=True)
    said = read(FLEET).captures("pve-b")
    for host, release in releases.items():
        own = {**said, RELEASE: replace(said[RELEASE], out=f"{release}\n".encode())}
        writer.write(host, [replace(capture, target=host) for capture in own.values()])
    writer.finish()
    return path


def odd(run: Run) -> dict[str, list[str]]:
    """By host what is odd about it."""
    return {one.target: [f.subject for f in one.findings] for one in run.outcomes if one.agent == AGENT}


def label(gapline: CommandLine) -> None:
    """Give every host of the fleet file the same label."""
    fleet = gapline.here / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("}\n", ", labels: [inference], containers: none}\n"))


def test_the_odd_host_is_named_until_it_is_like_the_others(gapline: CommandLine, tmp_path: Path) -> None:
    """In the answer, the run, the report, a replay; gone when the one host was looked at again after its repair."""
    names = ("gpu1", "gpu2", "gpu3")
    morning = record(tmp_path / "morning", {"gpu1": NEW, "gpu2": NEW, "gpu3": OLD})
    evening = record(tmp_path / "evening", dict.fromkeys(names, NEW))
    chosen = ("--agent", "host.kernel", "--agent", "host.cpu_frequency", "--fail-on", "none")
    with serving(morning) as server:
        gapline.fleet(*(server.host(name) for name in names))
        gapline("audit", *chosen, "--out", "unlabelled")
        label(gapline)
        told = gapline("audit", *chosen, "--out", "out").out
    title = f"Kernel release is {OLD} here, but 2 of 3 hosts labelled inference have {NEW}"
    assert odd(gapline.run("unlabelled")) == {}
    assert odd(gapline.run()) == {"gpu3": ["kernel release"]}
    assert f"gpu3  {title}  [{CODE}]" in told
    report = (gapline.here / "out" / "report.html").read_text()
    assert title in report
    assert "/proc/sys/kernel/osrelease" in report

    gapline("replay", "out/snapshot-1", "--out", "replayed")
    assert odd(gapline.run("replayed")) == odd(gapline.run())

    with serving(evening) as server:
        gapline.fleet(*(server.host(name) for name in names))
        label(gapline)
        done = gapline("rerun", "host.kernel", "--target", "gpu3", "--run", "out")
        again = gapline("rerun", AGENT, "--run", "out")
    assert [line for line in done.out.splitlines() if line.startswith("fixed") and line.endswith(CODE)]
    assert CODE not in again.out
    assert odd(gapline.run()) == {}
    assert CODE not in (gapline.here / "out" / "report.html").read_text()


def test_it_is_explained_like_every_other_agent(gapline: CommandLine) -> None:
    """Listed, shown with what it compares, and both codes explained."""
    listed = gapline("agents").out
    assert [line for line in listed.splitlines() if line.startswith(AGENT) and "always" in line]
    shown = gapline("agents", AGENT).out
    assert all(name in shown for name in (CODE, "fleet.odd_gpu", "host.kernel", "host.pcie"))
    (alone,) = gapline("agents", AGENT, "--json").json["agents"]
    assert (alone["id"], alone["scope"], alone["sources"]) == (AGENT, "fleet", {})
    told = gapline("explain", CODE).out
    assert "more than half" in " ".join(told.split()).lower()
    assert f"gapline rerun {AGENT}" in told
