"""Many hosts at once: nobody is shed for good, nothing runs out."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys

import pytest

from gapline.orchestrator.transport.ssh.limits import raise_descriptor_limit
from tests.ssh.conftest import MakeDialer
from tests.ssh.output import run
from tests.ssh.sshd import MakeSshd

pytestmark = pytest.mark.ssh


async def test_forty_hosts_on_one_server_that_sheds(make_sshd: MakeSshd, make_dialer: MakeDialer) -> None:
    """One sshd that sheds unauthenticated connections from the fourth on lets all forty in."""
    server = make_sshd("MaxStartups 4:50:10", address="0.0.0.0")  # noqa: S104 - loopback addresses are all that is used
    addresses = [f"127.0.{number // 8}.{number % 8 + 1}" for number in range(40)]
    server.know(*(f"[{address}]:{server.port}" for address in addresses))
    dialer = make_dialer(attempts=12)

    async def audit(address: str) -> bytes:
        route = await dialer.connect(server.host(address, address=address))
        output = await run(route, "echo in")
        await route.close()
        return bytes(output.out)

    assert await asyncio.gather(*(audit(address) for address in addresses)) == [b"in\n"] * 40
    assert server.log.count("Accepted publickey") == 40


async def test_logins_at_one_server_wait_for_each_other(make_sshd: MakeSshd, make_dialer: MakeDialer) -> None:
    """Containers behind one address are not shed at all: only so many log in at once."""
    server = make_sshd("MaxStartups 3:100:3")
    dialer = make_dialer(logins_at_once=2, attempts=1)
    routes = await asyncio.gather(*(dialer.connect(server.host(f"ct{number}")) for number in range(12)))
    assert len(routes) == 12
    assert "drop connection" not in server.log


async def test_open_connections_are_limited(make_sshd: MakeSshd, make_dialer: MakeDialer) -> None:
    """The next host waits until a route is closed, also when a connection failed or was cancelled."""
    server = make_sshd()
    dialer = make_dialer(at_once=2)
    first, second = await asyncio.gather(*(dialer.connect(server.host(f"pve{number}")) for number in range(2)))
    waiting = asyncio.create_task(dialer.connect(server.host("pve3")))
    cancelled = asyncio.create_task(dialer.connect(server.host("pve4")))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    cancelled.cancel()
    await first.close()
    third = await waiting
    await second.close()
    await third.close()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    for number in range(3):
        await (await dialer.connect(server.host(f"again{number}"))).close()


def test_descriptor_limit_is_raised_as_far_as_allowed() -> None:
    """The soft limit goes up, never down, and never beyond the hard one."""
    code = (
        "import resource\n"
        "from gapline.orchestrator.transport.ssh.limits import raise_descriptor_limit\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 700))\n"
        "assert raise_descriptor_limit() == 700\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert raise_descriptor_limit() >= before[0]
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] == before[1]
