"""A host that is 40 ms away: how many round trips does an audit need beyond those of its reads?"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
from anyio.abc import SocketStream

from gapline.orchestrator.audit.fan_out import Circumstances, audit
from gapline.orchestrator.cli.routes import routes
from gapline.orchestrator.plan import Plan
from tests.bench.fan_out import ROUNDS, plan
from tests.bench.loopback_fleet import PORT, loopback_fleet

ROUND_TRIP = 0.040  # seconds
_NEAR, _FAR = 2301, 2302


def far_away() -> None:
    """Print the round trips: the time that the distance adds, over the time of one."""
    with tempfile.TemporaryDirectory() as name, loopback_fleet(Path(name)) as fleet:
        host = replace(fleet.hosts(1)[0], address="127.0.0.1", known_hosts=fleet.known_hosts)
        near, far = (plan((replace(host, port=port),)) for port in (_NEAR, _FAR))
        known = fleet.known_hosts
        key = known.read_text().split(" ", 1)[1]
        known.write_text("".join(f"[127.0.0.1]:{port} {key}" for port in (_NEAR, _FAR)))
        times = anyio.run(_measure, near, far)
        added = times[1] - times[0]
        print(
            f"at {ROUND_TRIP * 1000:.0f} ms: {times[1]:.2f} s, near: {times[0]:.2f} s: {added / ROUND_TRIP:.1f} round trips in all"
        )


async def _measure(near: Plan, far: Plan) -> tuple[float, float]:
    async with proxy(_NEAR, 0.0), proxy(_FAR, ROUND_TRIP / 2):
        times: tuple[list[float], list[float]] = ([], [])
        for number in range(ROUNDS + 1):
            for which, of in enumerate((near, far)):
                begin = time.monotonic()
                async with routes() as connect:
                    run = await audit(of, connect, keep=None, circumstances=Circumstances())
                assert run.targets[0].problem is None, run.targets[0].problem
                if number:
                    times[which].append(time.monotonic() - begin)
        return statistics.median(times[0]), statistics.median(times[1])


@asynccontextmanager
async def proxy(port: int, delay: float) -> AsyncIterator[None]:
    """Forwards to the server, each direction late by `delay` seconds, with no limit to what is under way."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)

    async def forward(client: SocketStream) -> None:
        async with client, await anyio.connect_tcp("127.0.0.1", PORT) as server, anyio.create_task_group() as tasks:
            tasks.start_soon(_pump, client, server, delay)
            tasks.start_soon(_pump, server, client, delay)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, forward)
        yield
        tasks.cancel_scope.cancel()


async def _pump(source: SocketStream, sink: SocketStream, delay: float) -> None:
    send, receive = anyio.create_memory_object_stream[tuple[float, bytes]](10_000)

    async def deliver() -> None:
        async with receive:
            async for due, data in receive:
                await anyio.sleep(max(0.0, due - time.monotonic()))
                await sink.send(data)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(deliver)
        async with send:
            try:
                async for data in source:
                    await send.send((time.monotonic() + delay, data))
            except anyio.BrokenResourceError:
                pass
        tasks.cancel_scope.cancel()
