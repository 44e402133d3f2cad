"""Through other machines: ProxyJump, chains of them, and ProxyCommand."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.model.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionDropped,
    ConnectionRefused,
    HostKeyUnknown,
    NameNotResolved,
    ProtocolFailed,
)
from gapline.orchestrator.transport.ssh.dialer import Dialer
from tests.ssh.conftest import MakeDialer
from tests.ssh.output import Output, run
from tests.ssh.sshd import MakeSshd, Sshd, descendants, free_port

pytestmark = pytest.mark.ssh


@pytest.fixture
def behind(make_sshd: MakeSshd, tmp_path: Path) -> tuple[Sshd, Sshd, Path]:
    """A target, a jump host, and a known_hosts file that knows both."""
    target, jump = make_sshd("MaxStartups 100"), make_sshd()
    both = tmp_path / "both"
    both.write_text(target.known_hosts.read_text() + jump.known_hosts.read_text())
    return target, jump, both


def spec(jump: Sshd) -> str:
    """As it is written after `ssh -J`."""
    return f"{jump.user}@{jump.address}:{jump.port}"


async def test_one_jump_connection_for_all_targets(behind: tuple[Sshd, Sshd, Path], dialer: Dialer) -> None:
    """Twenty targets behind a jump host cost one login there, even when all start at once."""
    target, jump, both = behind
    hosts = [target.host(f"pve{number}", known_hosts=both, jump=spec(jump)) for number in range(20)]
    routes = await asyncio.gather(*(dialer.connect(host) for host in hosts))
    outputs = await asyncio.gather(*(run(route, "echo in") for route in routes))
    assert [bytes(output.out) for output in outputs] == [b"in\n"] * 20
    assert jump.log.count("Accepted publickey") == 1
    assert target.log.count("Accepted publickey") == 20
    for route in routes:
        await route.close()
    again = await dialer.connect(hosts[0])  # the jump connection outlives the routes
    assert (await run(again, "echo still")).out == b"still\n"


async def test_chain(behind: tuple[Sshd, Sshd, Path], make_sshd: MakeSshd, dialer: Dialer) -> None:
    """`first,second` goes through both, in this order."""
    target, second, both = behind
    first = make_sshd()
    both.write_text(both.read_text() + first.known_hosts.read_text())
    route = await dialer.connect(target.host(known_hosts=both, jump=f"{spec(first)},{spec(second)}"))
    assert (await run(route, "echo in")).out == b"in\n"
    assert [server.log.count("Accepted publickey") for server in (first, second, target)] == [1, 1, 1]


async def test_proxy_jump_of_the_users_file(
    behind: tuple[Sshd, Sshd, Path], make_dialer: MakeDialer, home: Path
) -> None:
    """The jump host's own settings come from the file as well."""
    target, jump, both = behind
    (home / ".ssh/config").write_text(
        f"Host gate\n HostName {jump.address}\n Port {jump.port}\n ProxyJump none\n"
        f"Host *\n ProxyJump gate\n IdentityFile {target.identity}\n UserKnownHostsFile {both}\n"
    )
    route = await make_dialer().connect(target.host(known_hosts=None, identity=()))
    assert (await run(route, "echo in")).out == b"in\n"
    assert jump.log.count("Accepted publickey") == 1


@pytest.mark.parametrize("circle", ["Host *\n ProxyJump gate\n", "Host a\n ProxyJump b\nHost b\n ProxyJump a\n"])
async def test_a_circle_of_jump_hosts(make_dialer: MakeDialer, home: Path, circle: str) -> None:
    """Found before any connection, with the way out."""
    (home / ".ssh/config").write_text(circle)
    with pytest.raises(ConfigError, match="goes through itself") as caught:
        await make_dialer().connect(Host(name="pve1", address="a"))
    assert "ProxyJump none" in caught.value.hint


async def test_host_keys_are_checked_at_every_hop(behind: tuple[Sshd, Sshd, Path], dialer: Dialer) -> None:
    """An unknown jump host stops it, and the error names both."""
    target, jump, _ = behind
    with pytest.raises(HostKeyUnknown, match=f"pve1: not reached: jump host {jump.address}"):
        await dialer.connect(target.host(jump=spec(jump)))
    assert "Accepted" not in jump.log


async def test_a_failed_jump_host_is_not_tried_for_every_target(
    behind: tuple[Sshd, Sshd, Path], dialer: Dialer
) -> None:
    """Ten targets, one failed login: else a dead jump host would cost a time-out per target."""
    target, jump, both = behind
    stranger = f"nobody-{os.getpid()}@{jump.address}:{jump.port}"
    hosts = [target.host(f"pve{number}", known_hosts=both, jump=stranger) for number in range(10)]
    errors = await asyncio.gather(*(dialer.connect(host) for host in hosts), return_exceptions=True)
    assert {type(error) for error in errors} == {AuthenticationFailed}
    assert sorted({str(error).split(":")[0] for error in errors}) == sorted(host.name for host in hosts)
    assert jump.log.count("Invalid user") == 1


async def test_what_fails_behind_the_jump_host(
    behind: tuple[Sshd, Sshd, Path], make_sshd: MakeSshd, dialer: Dialer, make_dialer: MakeDialer
) -> None:
    """The jump host was reached, the target was not: refused, not resolved, not allowed."""
    target, jump, both = behind
    with pytest.raises(ConnectionRefused, match="the jump host cannot connect"):
        await dialer.connect(target.host(port=free_port(), known_hosts=both, jump=spec(jump)))
    with pytest.raises(NameNotResolved, match="the jump host cannot resolve"):
        await dialer.connect(target.host(address="pve1.invalid", known_hosts=both, jump=spec(jump)))
    closed = make_sshd("AllowTcpForwarding no")
    both.write_text(both.read_text() + closed.known_hosts.read_text())
    with pytest.raises(ProtocolFailed, match="may not connect") as caught:
        await make_dialer().connect(target.host(known_hosts=both, jump=spec(closed)))
    assert "AllowTcpForwarding" in caught.value.hint


async def test_losing_the_jump_host_drops_what_is_behind(behind: tuple[Sshd, Sshd, Path], dialer: Dialer) -> None:
    """Open channels end as dropped; further targets say why."""
    target, jump, both = behind
    host = target.host(known_hosts=both, jump=spec(jump))
    route = await dialer.connect(host)
    channel = await route.open("sleep 600", Output().receive)
    jump.stop()
    with pytest.raises(ConnectionDropped):
        await channel.ended()
    with pytest.raises(ConnectionDropped, match="jump host"):
        await dialer.connect(host)


async def test_proxy_command(sshd: Sshd, make_dialer: MakeDialer, home: Path) -> None:
    """Run by a shell, with its tokens expanded; its stderr is not part of the connection; both end together."""
    relay = home / "relay"
    relay.write_text(RELAY)
    (home / ".ssh/config").write_text("ProxyCommand python3 $HOME/relay %h %p\n")
    route = await make_dialer().connect(sshd.host())
    assert (await run(route, "cat", b"x" * 300_000)).out == b"x" * 300_000
    proxies = [process for process in descendants(os.getpid()) if str(relay) in command_line(process)]
    assert len(proxies) == 1
    await route.close()
    assert str(relay) not in command_line(proxies[0])


async def test_a_proxy_command_that_fails(sshd: Sshd, make_dialer: MakeDialer, home: Path) -> None:
    """Its own words are the evidence."""
    (home / ".ssh/config").write_text("ProxyCommand sh -c 'echo no such bastion >&2; exit 1'\n")
    with pytest.raises(ConnectionRefused, match="ProxyCommand") as caught:
        await make_dialer().connect(sshd.host())
    assert caught.value.evidence == "no such bastion"
    assert "no such bastion" in caught.value.hint


def command_line(process: int) -> str:
    """How a process was started; empty when it has gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


RELAY = """
import os, socket, sys, threading
print("chatter", file=sys.stderr, flush=True)
there = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def upward():
    while data := os.read(0, 65536):
        there.sendall(data)
    there.shutdown(socket.SHUT_WR)
threading.Thread(target=upward, daemon=True).start()
while data := there.recv(65536):
    while data:
        data = data[os.write(1, data):]
"""
