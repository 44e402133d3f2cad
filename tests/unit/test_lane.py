"""A lane on routes that fail in every way: one capture per item, and what had arrived is kept."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.collect.lane import Pace, run_lane
from gapline.orchestrator.collect.replay import answer, ends
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import AuthenticationFailed, ConnectionDropped, SessionRefused, TransportError
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File, Script
from gapline.orchestrator.transport.route import Receive, Stream

BOUND = Binding("129", "4711", "/etc/pve/lxc/129.conf", "/lxc/129")
ITEMS = [
    Item("h", File("/a")),
    Item("h", Command(("b", "c"))),
    Item("h/129", File("/in"), BOUND, enter="129"),
    Item("h/129", Command(("in",)), BOUND, enter="129"),
    Item("h", File("/d")),
]
STORED = {
    (item.target, item.source.key): Capture(item.target, item.source.key, "", b"out %d\n\n@x" % n, b"err\n" * n)
    for n, item in enumerate(ITEMS)
}
QUICK = Pace(start=0.2, item=0.2, slack=0.1, linger=0.05, session=0.3)


class Scripted:
    """A route whose far side does what `act` says, once the whole script is there."""

    def __init__(self, act: Callable[[Playing, bytes], None], refuse: int = 0) -> None:
        self.target, self.connections, self.sessions = "h", 1, 0
        self._act, self._refuse = act, refuse

    async def open(self, command: str, receive: Receive) -> Playing:
        """A channel, or a refusal as long as any are left."""
        assert command
        if self._refuse > 0:
            self._refuse -= 1
            raise SessionRefused("h", "no more sessions")
        self.sessions += 1
        return Playing(receive, self._act)

    async def close(self) -> None:
        """Nothing is held."""


class Playing:
    """One channel of it."""

    def __init__(self, receive: Receive, act: Callable[[Playing, bytes], None]) -> None:
        self.receive, self._act = receive, act
        self.input_closed = self.abandoned = False
        self.error: TransportError | None = None
        self.exit: int | None = None
        self._script = b""
        self._over = anyio.Event()

    async def send(self, data: bytes) -> None:
        """Act when the script is whole."""
        self._script += data
        if ends(self._script):
            self._act(self, self._script)

    def end(self, status: int | None = 0, error: TransportError | None = None) -> None:
        """The far side ends."""
        self.exit, self.error = status, error
        self._over.set()

    def close_input(self) -> None:
        """Remember it."""
        self.input_closed = True

    async def ended(self) -> int | None:
        """As the far side ended."""
        await self._over.wait()
        if self.error is not None:
            raise self.error
        return self.exit

    def abandon(self) -> None:
        """Remember it."""
        self.abandoned = True


def stored(target: str, key: str) -> Capture | None:
    """What the far side has."""
    return STORED.get((target, key))


async def lane(
    act: Callable[[Playing, bytes], None], refuse: int = 0
) -> tuple[list[Capture], TransportError | None, Scripted]:
    """Run all items against a far side."""
    captures: list[Capture] = []
    route = Scripted(act, refuse)
    error = await run_lane(route, ITEMS, become=Become.NONE, deliver=captures.append, pace=QUICK)
    assert sorted(one.source for one in captures) == sorted(item.source.key for item in ITEMS)
    return captures, error, route


def kinds(captures: list[Capture]) -> list[ProblemKind | None]:
    """Problems by the order of the items."""
    found = {(one.target, one.source): one.problem.kind if one.problem else None for one in captures}
    return [found[item.target, item.source.key] for item in ITEMS]


def whole(playing: Playing, script: bytes) -> None:
    """Answer everything and end."""
    out, err = answer(script, stored)
    playing.receive(Stream.OUT, out)
    playing.receive(Stream.ERR, err)
    playing.end()


async def test_all_is_delivered() -> None:
    """Items of the host and from inside a container, with both streams."""
    captures, error, route = await lane(whole)
    assert error is None
    assert kinds(captures) == [None] * 5
    assert {(one.target, one.source): (one.out, one.err) for one in captures} == {
        key: (one.out, one.err) for key, one in STORED.items()
    }
    assert route.sessions == 1


@settings(deadline=None)
@given(data=st.data())
def test_dropped_anywhere(data: st.DataObject) -> None:
    """Wherever both streams break off: complete items are whole, the others say dropped, nothing comes twice."""

    def cut(playing: Playing, script: bytes) -> None:
        out, err = answer(script, stored)
        playing.receive(Stream.OUT, out[: data.draw(st.integers(0, len(out) - 1))])
        playing.receive(Stream.ERR, err[: data.draw(st.integers(0, len(err)))])
        playing.end(None, ConnectionDropped("h", "the connection was lost"))

    captures, error, _ = anyio.run(lane, cut)
    assert isinstance(error, ConnectionDropped)
    for one in captures:
        expected = STORED[one.target, one.source]
        if one.problem is None:
            assert (one.out, one.err, one.exit) == (expected.out, expected.err, 0)
        else:
            assert one.problem.kind is ProblemKind.DROPPED
            assert expected.out.startswith(one.out)


async def test_drop_behind_the_end_marks_is_none() -> None:
    """Complete means both end marks; what happens to the connection then is of no interest."""

    def drop(playing: Playing, script: bytes) -> None:
        out, err = answer(script, stored)
        playing.receive(Stream.OUT, out)
        playing.receive(Stream.ERR, err)
        playing.end(None, ConnectionDropped("h", "gone"))

    captures, error, _ = await lane(drop)
    assert error is None
    assert kinds(captures) == [None] * 5


async def test_silent_end_is_not_complete() -> None:
    """A channel that simply ends, without any error, has not delivered what is missing: the rest is asked for again."""
    seen: list[bytes] = []

    def half(playing: Playing, script: bytes) -> None:
        seen.append(script)
        if len(seen) > 1:
            whole(playing, script)
            return
        out, err = answer(script, stored)
        playing.receive(Stream.OUT, out[: out.index(b"out 1") + 3])
        playing.receive(Stream.ERR, err)
        playing.end(0)

    captures, error, route = await lane(half)
    assert error is None
    assert kinds(captures) == [None, ProblemKind.DROPPED, None, None, None]
    assert next(one.out for one in captures if one.problem) == b"out"
    assert route.sessions == 2


async def test_hanging_item_is_given_up_and_the_rest_read_by_another_channel() -> None:
    """The local guard closes the input, leaves the channel behind and goes on behind the item."""
    channels: list[Playing] = []

    def hang(playing: Playing, script: bytes) -> None:
        channels.append(playing)
        if len(channels) > 1:
            whole(playing, script)
            return
        out, err = answer(script, stored)
        playing.receive(Stream.OUT, out[: out.index(b"out 0") + 3])
        playing.receive(Stream.ERR, err)

    captures, error, _ = await lane(hang)
    assert error is None
    assert kinds(captures) == [ProblemKind.TIMED_OUT, None, None, None, None]
    assert channels[0].input_closed
    assert channels[0].abandoned


async def test_shell_that_never_begins() -> None:
    """A login shell that hangs is given up once, not once for each item."""
    captures, error, route = await lane(lambda playing, _: playing.receive(Stream.OUT, b"Welcome!\n" * 1000))
    assert error is None
    assert set(kinds(captures)) == {ProblemKind.TIMED_OUT}
    assert route.sessions == 1


@pytest.mark.parametrize(
    ("said", "status", "become", "kind"),
    [
        (b"sudo: a password is required\n", 1, Become.SUDO, ProblemKind.DENIED),
        (b"audit is not in the sudoers file.\n", 1, Become.SUDO, ProblemKind.DENIED),
        (b"sh: sudo: not found\n", 127, Become.SUDO, ProblemKind.COMMAND_MISSING),
        (b"This account is currently not available.\n", 1, Become.NONE, ProblemKind.FAILED),
        (b"", None, Become.NONE, ProblemKind.FAILED),
    ],
)
async def test_shell_that_refuses(said: bytes, status: int | None, become: Become, kind: ProblemKind) -> None:
    """What the shell or sudo said is the problem of every item."""

    def refuse(playing: Playing, _script: bytes) -> None:
        playing.receive(Stream.ERR, said)
        playing.end(status)

    captures: list[Capture] = []
    await run_lane(Scripted(refuse), ITEMS, become=become, deliver=captures.append, pace=QUICK)
    assert {one.problem.kind for one in captures if one.problem} == {kind}
    assert len(captures) == len(ITEMS)
    assert all(
        said.decode().strip() in one.problem.detail for one in captures if one.problem and kind != "command_missing"
    )


async def test_refused_sessions_are_waited_for() -> None:
    """A server at its limit is asked again, with pauses, for a bounded time."""
    captures, error, _ = await lane(whole, refuse=2)
    assert error is None
    assert kinds(captures) == [None] * 5
    captures, error, _ = await lane(whole, refuse=1000)
    assert isinstance(error, SessionRefused)
    assert set(kinds(captures)) == {ProblemKind.UNREACHED}


async def test_route_that_cannot_be_opened() -> None:
    """The transport's error is returned, and is the problem of every item."""

    class Closed(Scripted):
        """A server that lets nobody in."""

        async def open(self, command: str, receive: Receive) -> Playing:
            """Fail."""
            assert command
            assert receive is not None
            raise AuthenticationFailed("h", "no key fits")

    captures: list[Capture] = []
    error = await run_lane(Closed(whole), ITEMS, become=Become.NONE, deliver=captures.append)
    assert isinstance(error, AuthenticationFailed)
    assert kinds(captures) == [ProblemKind.UNREACHED] * 5


async def test_cancelled() -> None:
    """The input is closed at once, and every item still gets its capture."""
    channels: list[Playing] = []
    captures: list[Capture] = []
    with anyio.move_on_after(0.05) as scope:
        await run_lane(
            Scripted(lambda playing, _: channels.append(playing)), ITEMS, become=Become.NONE, deliver=captures.append
        )
    assert scope.cancelled_caught
    assert channels[0].input_closed
    assert kinds(captures) == [ProblemKind.DROPPED] * 5


async def test_fault_of_ours_in_deliver_is_raised() -> None:
    """An exception of the receiver ends the lane and is not swallowed by the event loop."""

    def broken(_: Capture) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run_lane(Scripted(whole), ITEMS, become=Become.NONE, deliver=broken, pace=QUICK)


async def test_what_cannot_be_read_is_not_sent() -> None:
    """A stopped container has no init and no cgroup, and single sudo reads cannot enter or run scripts."""
    stopped = Binding("131", "", "/etc/pve/lxc/131.conf", "")
    items = [
        Item("h/131", File("/proc/{init}/limits"), stopped),
        Item("h/131", File("/sys/fs/cgroup{cgroup}/memory.max"), stopped),
        Item("h/131", Script("s", 'cat "/proc/$INIT/status"'), stopped),
        Item("h/131", File("/x"), stopped, enter="131"),
        Item("h/131", File("/{config}"), Binding("131", "1", "", "/")),
        Item("h/129", File("/proc/{init}/root/etc/shadow"), BOUND),
        Item("h", Script("r", "id", root=True)),
        Item("h/129", File("/in"), BOUND, enter="129"),
    ]
    captures: list[Capture] = []
    route = Scripted(whole)
    assert await run_lane(route, items, become=Become.SUDO_READS, deliver=captures.append) is None
    assert route.sessions == 0
    assert [one.problem.kind for one in captures if one.problem] == [
        *[ProblemKind.NOT_RUNNING] * 4,
        ProblemKind.MISSING,
        ProblemKind.WITHHELD,
        ProblemKind.DENIED,
        ProblemKind.DENIED,
    ]
