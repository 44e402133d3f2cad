"""A container that is really configured on this machine, stopped, and full of secrets."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine, Done
from tests.ssh.sshd import Sshd

pytestmark = pytest.mark.ssh
_CONFIG = """\
# The licence server takes password={secret}-note
lxc.uts.name = nvidia-box
lxc.rootfs.path = dir:/nowhere
lxc.environment = NVIDIA_API_KEY={secret}-environment
lxc.environment = HF_TOKEN={secret}-nvidia
lxc.mount.entry = /dev/nvidia0 dev/nvidia0 none bind,optional,create=file
lxc.mount.entry = //nas/models mnt/models cifs username=x,password={secret}-mount 0 0
lxc.hook.start = /opt/nvidia/hook --token {secret}-hook
"""


@dataclass(frozen=True)
class Planted:
    """A container and the word that must be found nowhere."""

    name: str
    secret: str


@pytest.fixture
def planted() -> Iterator[Planted]:
    """Its configuration, and a process with secrets in its environment and its arguments."""
    if os.geteuid() != 0 or shutil.which("lxc-info") is None:
        pytest.skip("needs root and lxc")
    it = Planted(f"gapline-{secrets.token_hex(4)}", f"s3cr3t{secrets.token_hex(8)}")
    folder = Path("/var/lib/lxc") / it.name
    folder.mkdir(parents=True)
    (folder / "config").write_text(_CONFIG.format(secret=it.secret))
    arguments = ["sh", "-c", "read x", "vllm", "serve", "--api-key", f"{it.secret}-argument"]
    environment = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": f"{it.secret}-process"}
    with subprocess.Popen(arguments, env=environment, stdin=subprocess.PIPE) as process:
        yield it
        process.kill()
    shutil.rmtree(folder)


def nowhere(gapline: CommandLine, secret: str, *commands: Done) -> None:
    """The word is in no file below the place, and in nothing that was printed."""
    for done in commands:
        assert secret not in done.out + done.err
    holding = [path for path in gapline.root.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert holding == []


def test_planted_secrets_are_found_nowhere(gapline: CommandLine, sshd: Sshd, planted: Planted) -> None:
    """Snapshot, run, report, log, answer and progress; while the configuration itself was read and judged."""
    gapline.fleet(sshd.host())
    done = gapline("audit", "--out", "out", "--fail-on", "none")
    container = next(target for target in gapline.run().targets if target.name == planted.name)
    assert (container.audited, container.parent) == (True, "pve1")
    assert "names an NVIDIA node" in container.reason
    judged = {one.agent: one for one in gapline.run().outcomes if one.target == container.id}
    assert judged["container.configuration"].status.value != "unknown"
    assert "pair.device_chain" in judged
    captures = (gapline.here / "out" / "snapshot-1" / "pve1" / planted.name / "captures.json").read_text()
    assert "lxc.environment" in captures or list((gapline.here / "out").rglob(f"{planted.name}/*.txt"))
    shown = gapline("report", "out", "--format", "terminal")
    nowhere(gapline, planted.secret, done, shown)


def test_discover_lists_it_and_says_why(gapline: CommandLine, sshd: Sshd, planted: Planted) -> None:
    """Its GPU container with the reason, as text and as JSON; nothing is judged and nothing written."""
    gapline.fleet(sshd.host())
    before = gapline.files()
    told = gapline("discover", "--json").json
    (host,) = told["hosts"]
    assert (told["schema"], host["id"], host["problem"]) == ("gapline/discover/1", "pve1", None)
    (one,) = [one for one in host["containers"] if one["name"] == planted.name]
    assert one["gpu"]
    assert one["reason"].endswith("it is stopped")
    assert gapline.files() == before


def test_one_container_alone(gapline: CommandLine, sshd: Sshd, planted: Planted) -> None:
    """`host/container` audits that, and of its host what the pairs need; one that is not there is named."""
    gapline.fleet(sshd.host())
    done = gapline("audit", f"pve1/{planted.name}", "pve1/not-there", "--out", "out", "--fail-on", "none")
    run = gapline.run()
    by_id = {target.id: target for target in run.targets}
    assert by_id["pve1"].reason == "the host of a container in question"
    assert by_id[f"pve1/{planted.name}"].audited
    absent = by_id["pve1/not-there"].problem
    assert absent is not None
    assert planted.name in absent.hint
    assert done.code == 3
    assert "host.cpu_frequency" not in {one.agent for one in run.outcomes}
    assert "host.nvidia_driver" in {one.agent for one in run.outcomes}
