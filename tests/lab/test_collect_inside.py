"""The collector in real containers: what is inside, who lets nobody in, and that nothing stays behind."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import anyio
import pytest

from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.collect.lane import Pace, run_lane
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat, Vantage
from gapline.orchestrator.transport.local import LocalRoute
from gapline.orchestrator.transport.route import Channel, Receive
from tests.lab.lxc import fleet
from tests.lab.lxc.container import LabContainer
from tests.lab.lxc.lab import LxcLab

pytestmark = pytest.mark.lab

_NUMBERS = itertools.count(os.getpid() * 1000)
INSIDE = Vantage.INSIDE
QUICK = Pace(start=10, item=2, slack=1, linger=1)


class LabRoute(LocalRoute):
    """The local route into the lab's host."""

    def __init__(self, lab: LxcLab) -> None:
        super().__init__("pve-lab")
        pid = lab.path("/").parent.name
        self._enter = f"nsenter --target={pid} --mount --net --pid --uts --cgroup --ipc -- sh -c"

    async def open(self, command: str, receive: Receive) -> Channel:
        """Run it on the lab's host, in a cgroup that may be left for a container's."""
        join = f"echo 0 > /sys/fs/cgroup/init.scope/cgroup.procs; exec {command}"
        return await super().open(f"exec {self._enter} '{join}'", receive)


def item(container: LabContainer, source: Source) -> Item:
    """A source inside a container."""
    return Item(f"h/{container.name}", source, Binding(container.name, "1", "/c", "/g"), enter=container.name)


async def collect(lab: LxcLab, items: list[Item]) -> list[Capture]:
    """One capture for each item, in their order."""
    captures: list[Capture] = []
    route = LabRoute(lab)
    error = await run_lane(route, items, become=Become.NONE, deliver=captures.append, pace=QUICK)
    await route.close()
    assert error is None
    assert len(captures) == len(items)
    found = {(capture.target, capture.source): capture for capture in captures}
    return [found[one.target, one.source.key] for one in items]


def sleepers(mark: str) -> int:
    """Processes on the real host that sleep this long."""
    lines = (path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists())
    return sum(mark.encode() in line for line in lines)


@pytest.mark.parametrize(
    "container", [fleet.RIGHT, fleet.STALE_UNPRIVILEGED, fleet.RIGHT_BUSYBOX], ids=lambda one: one.name
)
async def test_everything_inside(lxc_lab: LxcLab, container: LabContainer) -> None:
    """Every kind of source, in one script within, between items of the host."""
    sources: list[Source] = [
        File("/proc/1/comm", vantage=INSIDE),
        File("/nowhere", vantage=INSIDE),
        Glob("/proc/sys/kernel/host*", vantage=INSIDE),
        Stat("/dev/null", vantage=INSIDE),
        Script("who", 'printf "%s|" "$CT"; id -u; hostname; cat /proc/1/comm; echo err >&2', vantage=INSIDE),
        Script("env", "env | cut -d= -f1 | sort | tr '\\n' ' '", vantage=INSIDE),
        Script("slow", "sleep 60", timeout=1, vantage=INSIDE),
        Script("big", "head -c 700000 /dev/zero", limit=400_000, vantage=INSIDE),
        Command(("nvidia-smi",), wakes_gpu=True, vantage=INSIDE),
    ]
    host = [Item("h", File("/proc/version")), Item("h", File("/etc/hostname"))]
    items = [host[0], *(item(container, source) for source in sources), host[1]]
    first, comm, missing, glob, null, who, env, slow, big, gpu, last = await collect(lxc_lab, items)
    assert (first.problem, last.problem) == (None, None)
    assert comm.problem is None
    assert missing.problem is not None
    assert missing.problem.kind is ProblemKind.MISSING
    assert f"hostname:{glob.out.split(b':')[1].decode().strip()}" in glob.text
    assert null.text.startswith("/dev/null|character special file|1|3|")
    assert who.text.startswith(f"{container.name}|0\n")
    assert who.err == b"err\n"
    assert "SSH" not in env.text
    assert {"GTAG", "PATH", "LC_ALL"} <= set(env.text.split())
    assert slow.problem is not None
    assert slow.problem.kind is ProblemKind.TIMED_OUT
    assert (len(big.out), big.truncated) == (400_000, True)
    assert gpu.problem is not None


async def test_who_lets_nobody_in(lxc_lab: LxcLab) -> None:
    """Stopped, frozen, without a shell and unknown containers, each with its problem, between one that answers."""
    nobody = LabContainer(name="999")
    asked = [fleet.RIGHT, fleet.STOPPED, fleet.FROZEN, fleet.WITHOUT_SHELL, nobody, fleet.RIGHT_BUSYBOX]
    source = Script("hi", "echo hi", timeout=1, vantage=INSIDE)
    captures = await collect(lxc_lab, [item(container, source) for container in asked])
    assert [capture.problem.kind if capture.problem else None for capture in captures] == [
        None,
        ProblemKind.NOT_RUNNING,
        ProblemKind.NOT_ENTERED,
        ProblemKind.NOT_ENTERED,
        ProblemKind.NOT_RUNNING,
        None,
    ]
    assert [capture.out for capture in captures if capture.problem is None] == [b"hi\n", b"hi\n"]


async def test_container_cannot_speak_for_others(lxc_lab: LxcLab) -> None:
    """A process inside that keeps the pipe and prints on has no place in what comes after it."""
    mark = f"7{next(_NUMBERS)}"
    hold = Script("hold", "(while :; do echo intruder; echo intruder >&2; done) & echo mine", timeout=1, vantage=INSIDE)
    captures = await collect(
        lxc_lab,
        [
            item(fleet.RIGHT, hold),
            Item("h", Command(("sleep", "1"))),
            Item("h", Script("s", f"echo host {mark}; sleep 1")),
        ],
    )
    assert b"mine\n" in captures[0].out
    assert (captures[1].out, captures[1].err) == (b"", b"")
    assert (captures[2].out, captures[2].err) == (f"host {mark}\n".encode(), b"")


@pytest.mark.parametrize("container", [fleet.RIGHT, fleet.STALE_UNPRIVILEGED], ids=lambda one: one.name)
async def test_nothing_survives_inside(lxc_lab: LxcLab, container: LabContainer) -> None:
    """Cancelling ends what was started in a container too, however it defends itself."""
    mark = f"7{next(_NUMBERS)}"
    text = f"trap '' TERM HUP; (setsid sleep {mark} &); (sleep {mark}; :) & sleep {mark}"
    captures: list[Capture] = []
    route = LabRoute(lxc_lab)
    items = [item(container, Script("long", text, timeout=300, vantage=INSIDE))]

    async def stop() -> None:
        while sleepers(mark) < 3:  # noqa: ASYNC110
            await anyio.sleep(0.05)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop)
        await run_lane(route, items, become=Become.NONE, deliver=captures.append)
    await route.close()
    with anyio.fail_after(10):
        while sleepers(mark):  # noqa: ASYNC110
            await anyio.sleep(0.05)
    assert [capture.problem.kind for capture in captures if capture.problem] == [ProblemKind.DROPPED]
