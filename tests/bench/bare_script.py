"""The floor: the very script that an audit would send, over one session per host, its output thrown away."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import anyio

from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.script import command, render
from gapline.orchestrator.inventory.host import Become, Host
from gapline.orchestrator.plan import Plan, host_lanes
from gapline.orchestrator.transport.route import Stream
from gapline.orchestrator.transport.ssh.dialer import Dialer


def script_of(plan: Plan, host: Host) -> str:
    """All readings of a host in one script."""
    items: Sequence[Item] = host_lanes(plan, host).first
    return render(items, nonce=secrets.token_hex(16), tag=secrets.token_hex(8), become=Become.NONE)


async def run_bare(plan: Plan) -> None:
    """Send it to all hosts at the same time and wait until each has ended."""
    async with Dialer() as dialer, anyio.create_task_group() as tasks:
        for host in plan.hosts:
            tasks.start_soon(_one, dialer, host, script_of(plan, host).encode())


async def _one(dialer: Dialer, host: Host, script: bytes) -> None:
    route = await dialer.connect(host)
    over = anyio.Event()
    received = bytearray()

    def receive(stream: Stream, data: bytes) -> None:
        """Thrown away, but for what tells that the script is through: the shell waits for its input to close."""
        if stream is Stream.OUT:
            received[:] = (received + data)[-64:]
            if b" z" in received[-16:]:
                over.set()

    channel = await route.open(command(Become.NONE), receive)
    await channel.send(script)
    with anyio.move_on_after(60):
        await over.wait()
    channel.close_input()
    await channel.ended()
    await route.close()
