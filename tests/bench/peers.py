"""The same script with the tools people use today, where they are installed (`scripts/bench` brings them)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from gapline.orchestrator.collect import shell
from tests.bench.loopback_fleet import PORT, USER, LoopbackFleet

FORKS = 50


def contenders(fleet: LoopbackFleet, hosts: int, script: str, folder: Path) -> dict[str, Callable[[], object]]:
    """A run of each tool that there is."""
    tools = Path(os.environ.get("GAPLINE_BENCH_TOOLS", "/nonexistent"))
    path = folder / "read.sh"
    path.write_text(f"#!/bin/sh\n{_alone(script)}")
    commands = {
        "ansible": _ansible(fleet, hosts, path, folder),
        "pyinfra": _pyinfra(fleet, hosts, path, folder),
    }
    missing = [name for name in commands if not (tools / name).exists()]
    if missing:
        print(f"  not installed, so not compared: {', '.join(missing)}", file=sys.stderr)
    # The bench user has no home, and what another user of that name left lies in the way: a new place each time.
    place = {"ANSIBLE_REMOTE_TEMP": f"/tmp/{folder.name}-ansible"}  # noqa: S108
    environment = {**os.environ, **_ENVIRONMENT, **place, "HOME": str(folder)}
    return {
        name: _runner([str(tools / name), *arguments], environment)
        for name, arguments in commands.items()
        if name not in missing
    }


_ENVIRONMENT = {
    "ANSIBLE_PIPELINING": "1",
    "ANSIBLE_HOST_KEY_CHECKING": "1",
    "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
    "ANSIBLE_GATHERING": "explicit",
}


def _alone(script: str) -> str:
    """The script without the watcher on its standard input, which these tools close at once."""
    return script.replace(shell.WATCH, "exec </dev/null\nsleep 0 & W=$!\n")


def _ansible(fleet: LoopbackFleet, hosts: int, script: Path, folder: Path) -> list[str]:
    options = (
        f"-o UserKnownHostsFile={fleet.known_hosts} -o IdentitiesOnly=yes -o ControlMaster=auto -o ControlPersist=60s"
    )
    lines = [
        f"{host.name} ansible_host={host.address} ansible_port={PORT} ansible_user={USER}"
        f" ansible_ssh_private_key_file={fleet.identity} ansible_ssh_common_args='{options}'"
        for host in fleet.hosts(hosts)
    ]
    inventory = folder / "ansible.ini"
    inventory.write_text("\n".join(lines) + "\n")
    return ["all", "-i", str(inventory), "-f", str(FORKS), "-m", "ansible.builtin.script", "-a", str(script)]


def _pyinfra(fleet: LoopbackFleet, hosts: int, script: Path, folder: Path) -> list[str]:
    data = {
        "ssh_port": PORT,
        "ssh_user": USER,
        "ssh_key": str(fleet.identity),
        "ssh_known_hosts_file": str(fleet.known_hosts),
    }
    entries = [(host.address, data) for host in fleet.hosts(hosts)]
    inventory, deploy = folder / "pyinfra_inventory.py", folder / "pyinfra_deploy.py"
    inventory.write_text(f"hosts = {entries!r}\n")
    deploy.write_text(f"from pyinfra.operations import server\n\nserver.script(src={str(script)!r})\n")
    return [str(inventory), str(deploy), "-y", "--parallel", str(FORKS)]


def _runner(command: list[str], environment: Mapping[str, str]) -> Callable[[], object]:
    def run() -> None:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{command[0]} failed: {done.stdout[-500:]}{done.stderr[-500:]}")

    return run
