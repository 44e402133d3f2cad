"""What the plan prints is what is read, and what it grants is what may be read."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.problem import ProblemKind
from tests.cli.command_line import CommandLine, keys_read
from tests.ssh.sshd import MakeSshd, Sshd

pytestmark = pytest.mark.ssh


def planned(gapline: CommandLine, *words: str) -> dict[str, str]:
    """The host's reads of a plan, with the privilege for each."""
    reads = gapline("plan", "--json", *words).json["reads"]
    return {read["source"]: read["privilege"] for read in reads if read["where"] == "host"}


def let_in(server: Sshd) -> None:
    """Sshd reads authorized_keys as the user who logs in."""
    for path in (server.directory, *server.directory.parents):
        if path.name.startswith(("pytest-", "test_", "sshd")):
            path.chmod(0o755)


def test_plan_lists_every_read_that_is_made(gapline: CommandLine, sshd: Sshd) -> None:
    """The snapshot's keys and the plan's are the same: nothing is read that was not printed."""
    gapline.fleet(sshd.host())
    gapline("audit", "--out", "out")
    read = keys_read(gapline.run(), gapline.here / "out", "pve1")
    assert read == set(planned(gapline))


@pytest.fixture
def granted(gapline: CommandLine, gauge: Path, ordinary_user: str) -> Iterator[Path]:
    """The printed sudoers file, checked by visudo and in force while the test runs."""
    gapline.more["PYTHONPATH"] = str(gauge)
    directory = Path("/etc/sudoers.d")
    if not directory.is_dir() or shutil.which("visudo", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("needs sudo with /etc/sudoers.d, and visudo")
    text = gapline("plan", "local", "--sudoers", ordinary_user, "--agent", "host.rootly").out
    path = directory / ordinary_user
    path.write_text(text)
    path.chmod(0o440)
    yield path
    path.unlink()


def test_an_audit_with_exactly_the_granted_reads(
    gapline: CommandLine, granted: Path, ordinary_user: str, make_sshd: MakeSshd
) -> None:
    """The granted reads are made as root, and nothing else is: neither by the audit nor by the user."""
    subprocess.run(["/usr/sbin/visudo", "-cf", granted], check=True, capture_output=True)
    assert granted.read_text().count("NOPASSWD: ") == 4
    server = make_sshd()
    let_in(server)
    gapline.fleet(
        server.host("least", user=ordinary_user, become=Become.SUDO_READS),
        server.host("bare", user=ordinary_user),
    )
    done = gapline("audit", "--agent", "host.rootly", "--agent", "host.pcie", "--out", "out", "--fail-on", "none")
    run = gapline.run()
    by_id = {(one.target, one.agent): one for one in run.outcomes}
    rootly = by_id["least", "host.rootly"]
    assert rootly.problem is None
    assert dict(rootly.fact or {}) == {"uid": "0", "lines": 5}
    assert (done.code, {one.id: one.privilege for one in run.targets}) == (
        3,
        {"least": "sudo_reads", "bare": f"user {ordinary_user}"},
    )
    bare = by_id["bare", "host.rootly"].problem
    assert bare is not None
    assert bare.kind is ProblemKind.DENIED
    assert "become" in bare.hint
    for target in run.targets:
        assert target.problem is not None
        assert "containers" in target.problem.detail
    command = [
        "runuser",
        "-u",
        ordinary_user,
        "--",
        "sudo",
        "-n",
        "timeout",
        "-k",
        "1",
        "10",
        "cat",
        "--",
        "/etc/shadow",
    ]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_doctor_says_what_stands_in_the_way(
    gapline: CommandLine, gauge: Path, ordinary_user: str, make_sshd: MakeSshd, tmp_path: Path
) -> None:
    """Not root, not known, not let in: each with what to do, and nothing is written."""
    gapline.more["PYTHONPATH"] = str(gauge)
    server = make_sshd()
    let_in(server)
    stranger = tmp_path / "stranger"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", stranger], check=True)
    gapline.fleet(
        server.host("ready"),
        server.host("not-root", user=ordinary_user),
        server.host("unknown", known_hosts=tmp_path / "empty"),
        server.host("not-let-in", identity=(stranger,)),
    )
    before = gapline.files()
    done = gapline("doctor", "--json", "--agent", "host.rootly")
    assert done.code == 3
    told = {target["id"]: target for target in done.json["targets"]}
    assert told["ready"]["ready"]
    assert told["ready"]["obstacles"] == []
    not_root = {one["what"]: one for one in told["not-root"]["obstacles"]}
    assert "become" in not_root["host.rootly"]["hint"]
    for name, words in {"unknown": "gapline trust", "not-let-in": "authorized_keys"}.items():
        (obstacle,) = told[name]["obstacles"]
        assert obstacle["what"] == "reach"
        assert words in obstacle["hint"] or words in obstacle["detail"] or "ssh-copy-id" in obstacle["hint"]
    assert gapline.files() == before
