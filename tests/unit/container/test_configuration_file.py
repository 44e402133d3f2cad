"""What leaves a target of a configuration file, by the real sed programs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gapline.agents.container.configuration_file import CONFIG
from gapline.agents.container.setting import WITHHELD

SECRET = "hunter2"  # noqa: S105 - the word that must not come out
PRIVATE = (
    f"# {SECRET}",
    f"  # {SECRET}",
    f"description: {SECRET}",
    f"lxc.environment: HF_TOKEN={SECRET}",
    f"lxc.environment = A={SECRET}",
    f"lxc.environment.runtime = A={SECRET}",
    f"env: A={SECRET}",
    f"lxc.init.cmd: /sbin/init --token {SECRET}",
    f"lxc.hook.pre-start = sh -c '{SECRET}'",
    f"lxc.net.0.script.up: /root/up {SECRET}",
    f"hookscript: local:snippets/{SECRET}",
    f"entrypoint: serve --api-key {SECRET}",
    f"lxc.mount.entry: //nas/models mnt/models cifs username=u,password={SECRET},ro 0 0",
    f"mp0: https://user:{SECRET}@nas/models,mp=/models",
    f"nonsense password=x {SECRET}",
    f"nonsense {SECRET}",
    f"[{SECRET} not a section",
)
PUBLIC = (
    "arch: amd64",
    "dev0: /dev/nvidia-uvm,mode=0666",
    "features: keyctl=1,nesting=1",
    "unprivileged: 1",
    "lxc.cgroup2.devices.allow: c 195:* rwm",
    "lxc.cgroup2.devices.allow = /dev/nvidia-uvm rw",
    "lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind,optional,create=file",
    "lxc.idmap: u 0 100000 65536",
    "lxc.include = /usr/share/lxc/config/common.conf",
    "",
    "[pve:pending]",
    "memory: 4096",
    "[before_upgrade]",
)


@pytest.fixture(params=[pytest.param((), id="GNU"), pytest.param(("busybox",), id="busybox")])
def sed(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The command on a file of this test."""
    prefix: tuple[str, ...] = request.param
    if shutil.which((*prefix, "sed")[0]) is None:
        pytest.skip(f"{(*prefix, 'sed')[0]} is not installed")
    return [*prefix, *(word.replace("{config}", str(tmp_path / "config")) for word in CONFIG.argv)]


def run(sed: list[str], tmp_path: Path, *lines: str) -> list[str]:
    """What comes out, line by line."""
    (tmp_path / "config").write_text("".join(f"{line}\n" for line in lines))
    done = subprocess.run(sed, capture_output=True, text=True, check=True)
    return done.stdout.removesuffix("\n").split("\n")


@pytest.mark.parametrize("line", PRIVATE)
def test_secrets_stay(sed: list[str], tmp_path: Path, line: str) -> None:
    """In every place where one can stand, also after a line that is let through."""
    out = run(sed, tmp_path, "arch: amd64", line, "memory: 1")
    assert SECRET not in "\n".join(out)
    assert [out[0], out[2]] == ["arch: amd64", "memory: 1"]
    assert WITHHELD in out[1]


def test_the_rest_comes_as_it_is(sed: list[str], tmp_path: Path) -> None:
    """Byte for byte and line for line."""
    assert run(sed, tmp_path, *PUBLIC) == list(PUBLIC)
