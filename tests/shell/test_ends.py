"""However a lane ends, every item gets one capture and the target keeps no process of ours."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import anyio
import pytest

from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.lane import Pace, run_lane
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File, Script, Source
from tests.shell.shells import ShellRoute, Way, collect, processes

_NUMBERS = itertools.count(os.getpid() * 1000)
QUICK = Pace(start=5, item=1, slack=0.5, linger=0.5)


def word() -> str:
    """A number of seconds that no other process sleeps."""
    return f"7{next(_NUMBERS)}"


async def gone(mark: str) -> bool:
    """Whether all processes with this word end, within a generous time."""
    with anyio.move_on_after(10):
        while processes(mark):  # other processes give no event  # noqa: ASYNC110  # other processes give no event
            await anyio.sleep(0.02)
        return True
    return False


def kinds(captures: list[Capture]) -> list[ProblemKind | None]:
    """What kept each capture from being complete."""
    return [capture.problem.kind if capture.problem else None for capture in captures]


async def test_time_out_kills_whatever_was_started(way: Way) -> None:
    """A child that ignores TERM, one in a session of its own and a grandchild that holds the pipe are all ended."""
    mark = word()
    text = f"trap '' TERM; echo begun; (setsid sleep {mark} &); (sleep {mark}; :) & sleep {mark}; echo not reached"
    captures = await collect(
        way,
        [
            Script("stubborn", text, timeout=1),
            Command(("sleep", mark), timeout=1),
            Script("pipe", f"echo begun; (sleep {mark}; :) & exit 0", timeout=1, limit=1_000_000),
            File("/proc/version"),
        ],
    )
    assert kinds(captures) == [ProblemKind.TIMED_OUT, ProblemKind.TIMED_OUT, kinds(captures)[2], None]
    assert captures[0].out == b"begun\n"
    assert captures[2].out == b"begun\n"
    assert [capture.err for capture in captures] == [b""] * 4
    assert await gone(mark)


async def test_being_killed_is_not_a_time_out(way: Way) -> None:
    """A command that somebody else ends fails; only together with the duration its status means a time-out."""
    (one,) = await collect(way, [Command(("sh", "-c", "kill -9 $$"), timeout=20)])
    assert kinds([one]) == [ProblemKind.FAILED]
    assert one.exit == 128 + signal.SIGKILL


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_nothing_survives_a_stop(way: Way, how: str) -> None:
    """Cancelling the lane or losing its route ends all its processes, also those that defend themselves."""
    mark = word()
    text = f"trap '' TERM HUP; (trap '' TERM HUP; setsid sleep {mark} &); (sleep {mark}; sleep {mark}) & sleep {mark}"
    items = [Item("local", source) for source in (File("/proc/version"), Script("long", text, timeout=300))]
    captures: list[Capture] = []
    route = ShellRoute(way.command)

    async def stop() -> None:
        while len(processes(mark)) < 3:  # noqa: ASYNC110  # other processes give no event
            await anyio.sleep(0.02)
        if how == "cancel":
            tasks.cancel_scope.cancel()
        else:
            await route.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop)
        await run_lane(route, items, become=Become.NONE, deliver=captures.append)
    assert await gone(mark)
    assert [capture.source for capture in captures] == [item.source.key for item in items]
    assert kinds(captures) == [None, ProblemKind.DROPPED]


async def test_no_process_is_left_after_a_normal_end(way: Way) -> None:
    """Neither the watcher nor a watchdog outlives its lane."""
    before = set(processes(way.command.split()[-2]))
    await collect(way, [Command(("true",), timeout=100), Script("s", "exit 0", timeout=100)])
    with anyio.fail_after(10):
        while set(processes(way.command.split()[-2])) - before or processes("sleep 100"):  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def test_lane_goes_on_behind_an_item_that_hangs(shell: Way) -> None:
    """A file that never answers costs its own time-out and a new lane; everything else is read."""
    hanging = Script("holds the shell", "kill -STOP $PPID; sleep 1", timeout=1)
    sources: list[Source] = [File("/proc/version"), hanging, File("/proc/filesystems"), Command(("echo", "x"))]
    captures = await collect(shell, sources, QUICK)
    assert kinds(captures) == [None, ProblemKind.TIMED_OUT, None, None]


async def test_shell_that_dies_is_replaced(shell: Way) -> None:
    """When an item takes the shell with it, the items behind it are read by another."""
    mark = word()
    captures = await collect(
        shell,
        [
            File("/proc/version"),
            Script("fatal", f"echo last; kill -9 $PPID; sleep {mark}", timeout=1),
            File("/proc/filesystems"),
        ],
        QUICK,
    )
    assert kinds(captures) in (
        [None, ProblemKind.DROPPED, None],  # the watchdog ended what was left, and with it the channel
        [None, ProblemKind.TIMED_OUT, None],  # the shell died before it had a watchdog, so our guard did
    )
    assert captures[1].out == b"last"  # a line feed at the very end could be the beginning of a marker
    assert await gone(mark)


async def test_hundred_megabytes(way: Way) -> None:
    """What is too long is dropped as it streams, and the rest of the lane is read."""
    captures = await collect(
        way, [Command(("head", "-c", "100000000", "/dev/zero"), timeout=100, limit=1000), File("/proc/version")]
    )
    assert [len(captures[0].out), captures[0].truncated] == [1000, True]
    assert kinds(captures) == [None, None]


async def test_cut_script_runs_nothing(way: Way, shared: Path) -> None:
    """A script that lacks only its last line does nothing at all."""
    from gapline.orchestrator.collect.script import render  # noqa: PLC0415

    proof = shared / "proof"
    script = render([Item("local", Script("s", f"touch {proof}"))], nonce="a1", tag="b2")
    route = ShellRoute(way.command)
    channel = await route.open("sh -s", lambda _stream, _data: None)
    await channel.send(script.encode()[: script.rindex("_m ")])
    channel.close_input()
    await channel.ended()
    await route.close()
    assert not proof.exists()


async def test_script_that_takes_its_shell_with_it(way: Way) -> None:
    """Scripts share a shell. One that hangs or kills it costs its own answer; the others are read, once each."""
    mark = word()
    captures = await collect(
        way,
        [
            Script("before", "echo 1; exit 3", timeout=5),
            Script("hangs", f"echo begun; sleep {mark}; echo not reached", timeout=1),
            Script("between", "echo 2; n=x N=y p=z", timeout=5),
            Script("kills", "echo begun; kill -9 $$", timeout=5),
            Script("broken", "echo begun; (", timeout=5),
            Script("after", 'echo "3$n$N$p$#"', timeout=5),
        ],
    )
    assert kinds(captures)[1] == ProblemKind.TIMED_OUT
    assert kinds(captures)[3] in (ProblemKind.DROPPED, ProblemKind.FAILED)
    assert [captures[number].text.strip() for number in (0, 1, 2, 5)] == ["1", "begun", "2", "30"]
    assert [kinds(captures)[number] for number in (0, 2, 4, 5)] == [ProblemKind.FAILED, None, ProblemKind.FAILED, None]
    assert captures[0].exit == 3
    assert await gone(mark)
