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
from tests.bench.bare_script import run_bare
from tests.bench.fan_out import ROUNDS, plan
from tests.bench.loopback_fleet import PORT, loopback_fleet

ROUND_TRIP = 0.040  # seconds
_NEAR, _FAR = 2301, 2302


def far_away() -> None:
    """Print the round trips: the time that the distance adds, over the time of one trip."""
    with tempfile.TemporaryDirectory() as name, loopback_fleet(Path(name)) as fleet:
        host = replace(fleet.hosts(1)[0], address="127.0.0.1", known_hosts=fleet.known_hosts)
        near, far = (plan((replace(host, port=port),)) for port in (_NEAR, _FAR))
        known = fleet.known_hosts
        key = known.read_text().split(" ", 1)[1]
        known.write_text("".join(f"[127.0.0.1]:{port} {key}" for port in (_NEAR, _FAR)))
        near_bare, far_bare, near_audit, far_audit = anyio.run(_measure, near, far)
        bare, audited = (far_bare - near_bare) / ROUND_TRIP, (far_audit - near_audit) / ROUND_TRIP
        print(
            f"{ROUND_TRIP * 1000:.0f} ms away: one script in one session {far_bare:.2f} s, the audit {far_audit:.2f} s"
        )
        print(f"  round trips: {bare:.1f} for the script, {audited:.1f} for the audit, {audited - bare:.1f} more")


async def _measure(near: Plan, far: Plan) -> list[float]:
    """Medians of the bare script near and far, then of the audit near and far."""
    async with proxy(_NEAR, 0.0), proxy(_FAR, ROUND_TRIP / 2):
        times: list[list[float]] = [[], [], [], []]
        for number in range(ROUNDS + 1):
            for which, (run, of) in enumerate(((run_bare, near), (run_bare, far), (_audit, near), (_audit, far))):
                begin = time.monotonic()
                await run(of)
                if number:
                    times[which].append(time.monotonic() - begin)
        return [statistics.median(values) for values in times]


async def _audit(of: Plan) -> None:
    async with routes() as connect:
        run = await audit(of, connect, keep=None, circumstances=Circumstances())
    if run.targets[0].problem is not None:
        raise RuntimeError(run.targets[0].problem.detail)


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
