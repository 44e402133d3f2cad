"""The replay server: who is let in, what is answered, and that it never outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from gapline.orchestrator.audit.fan_out import Circumstances, audit
from gapline.orchestrator.cli.selection import Selection, plan_of
from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.script import render
from gapline.orchestrator.demo import FLEET, REPAIRED
from gapline.orchestrator.discovery.identity import HOSTNAME
from gapline.orchestrator.model.errors import TransportError
from gapline.orchestrator.snapshot import read
from gapline.orchestrator.snapshot.recording import Recording
from gapline.orchestrator.transport.ssh.dialer import Dialer
from gapline.orchestrator.transport.ssh.replay_process import ReplayServer, serving

_PARENT = """
import sys, time
from pathlib import Path
from gapline.orchestrator.transport.ssh.replay_process import serving
with serving(Path(sys.argv[1])) as server:
    print(server.pid, server.folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ReplayServer]:
    """The worked example, as three hosts."""
    with serving(FLEET, copies=2) as running:
        yield running


def _script(target: str) -> bytes:
    return render((Item(target, HOSTNAME),), nonce="n0nce", tag="t4g").encode()


async def _connect(
    server: ReplayServer, user: str = "pve-b", key: asyncssh.SSHKey | None = None
) -> asyncssh.SSHClientConnection:
    return await asyncssh.connect(
        "127.0.0.1",
        server.port,
        config=None,
        username=user,
        client_keys=[key or str(server.folder / "identity")],
        known_hosts=str(server.folder / "known_hosts"),
        agent_path=None,
    )


async def _ran(server: ReplayServer, script: bytes, user: str = "pve-b") -> tuple[bytes, int | None]:
    async with await _connect(server, user) as connection:
        done = await connection.run("sh -s", input=script, encoding=None)
    assert isinstance(done.stdout, bytes)
    return done.stdout, done.exit_status


async def test_answers_a_script(server: ReplayServer) -> None:
    """With what was recorded, framed as a shell would have framed it."""
    out, status = await _ran(server, _script("pve-b"))
    assert b"\npve-b\n" in out
    assert out.endswith(b"\n@n0nce z\n")
    assert status == 0


async def test_script_that_breaks_off_runs_nothing(server: ReplayServer) -> None:
    """As in a real shell, where one function holds everything."""
    assert await _ran(server, _script("pve-b")[:-3]) == (b"", 2)


async def test_nobody_sees_another_host(server: ReplayServer) -> None:
    """A user name is a host, and asks about that host and its containers only."""
    out, _ = await _ran(server, _script("pve-b-0002"), user="pve-b-0001")
    assert b"\npve-b\n" not in out


@pytest.mark.parametrize("command", ["id", "sh", "sh -s; id", "sudo -n sh -s", None])
async def test_other_commands_are_refused(server: ReplayServer, command: str | None) -> None:
    """And a login shell, too."""
    async with await _connect(server) as connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.run(command)


async def test_files_and_forwarding_are_refused(server: ReplayServer) -> None:
    """It is no way into this machine or its network."""
    async with await _connect(server) as connection:
        with pytest.raises(asyncssh.Error):
            await connection.start_sftp_client()
        with pytest.raises(asyncssh.Error):
            await connection.open_connection("127.0.0.1", server.port)
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.forward_remote_port("127.0.0.1", 0, "127.0.0.1", server.port)


async def test_other_users_and_keys_stay_out(server: ReplayServer) -> None:
    """Only the key of this run, only for hosts that were recorded."""
    with pytest.raises(asyncssh.PermissionDenied):
        await _connect(server, "root")
    with pytest.raises(asyncssh.PermissionDenied):
        await _connect(server, key=asyncssh.generate_private_key("ssh-ed25519"))


async def test_copies_are_hosts_of_their_own(server: ReplayServer) -> None:
    """One recorded host stands in for a fleet, each copy with one connection."""
    names = ("pve-b", "pve-b-0001", "pve-b-0002")
    plan = plan_of(Selection(targets=(), fleet=None), tuple(server.host(name) for name in names))
    async with Dialer() as dialer:
        run = await audit(plan, dialer.connect, keep=None, circumstances=Circumstances(synthetic=True))
    critical = [entry.target for entry in run.outcomes for one in entry.findings if one.severity == "critical"]
    assert critical == [f"{name}/129" for name in names]
    assert {target.connections for target in run.targets if target.parent is None} == {1}


def test_later_captures_replace_earlier_ones() -> None:
    """By target and source; everything else stays."""
    both, key = Recording([read(FLEET), read(REPAIRED)]), "script:containers"
    before, after = (read(path).lookup("pve-b", key) for path in (FLEET, REPAIRED))
    assert both.capture("pve-b", "pve-b", key) == after != before
    assert both.capture("pve-b", "pve-b", HOSTNAME.key) == read(FLEET).lookup("pve-b", HOSTNAME.key)


def test_damaged_snapshot_is_an_error_with_its_place(tmp_path: Path) -> None:
    """Said by the server, told by the parent."""
    with pytest.raises(TransportError, match=r"has no manifest\.json"), serving(tmp_path):
        pass


def test_ends_with_the_block() -> None:
    """And its keys with it."""
    with serving(FLEET) as running:
        assert _alive(running.pid)
    assert not _alive(running.pid)
    assert not running.folder.exists()


def test_ends_when_its_parent_is_killed() -> None:
    """Without a chance to clean up, by the end of its standard input."""
    parent = subprocess.Popen([sys.executable, "-c", _PARENT, str(FLEET)], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().split()
        assert _alive(int(pid))
        os.kill(parent.pid, signal.SIGKILL)
    for _ in range(300):
        if not _alive(int(pid)):
            break
        time.sleep(0.1)
    assert not _alive(int(pid))
    assert not Path(folder).exists()


def _alive(pid: int) -> bool:
    """A zombie, whom nobody has waited for yet, is not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")
