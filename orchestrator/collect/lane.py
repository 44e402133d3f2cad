"""One lane: items read one after the other by a script on a channel, whatever happens on the way.

Exactly one capture is delivered for every item. What had arrived before a drop or a hang is kept.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import anyio

from gapline.orchestrator.collect.diagnose import dropped, timed_out
from gapline.orchestrator.collect.ending import Order, orders
from gapline.orchestrator.collect.entry import shell_problem
from gapline.orchestrator.collect.group import Batch, allowed
from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.reading import Deliver, Reading, UnderWay, unfinished
from gapline.orchestrator.collect.refusal import refusal
from gapline.orchestrator.collect.script import assemble, command
from gapline.orchestrator.collect.shell import GIVE_UP_AFTER
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.errors import SessionRefused, TransportError
from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.model.source import KIB
from gapline.orchestrator.transport.route import Channel, Route, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long to wait for what, in seconds, beyond what the target itself is told."""

    start: float = 30.0  # for a login shell to run the first line
    item: float = 15.0  # for what has no time-out on the target: files, patterns
    slack: float = 5.0  # after the target was told to give up
    tick: float = 1.0  # how often the time of the present item is looked at
    linger: float = 1.0  # for a lane to end after its input was closed
    session: float = 60.0  # for a session while the server refuses more of them
    rate: float = 8.0 * KIB  # bytes a second below which a transfer counts as hanging


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """What a lane is told once."""

    route: Route
    become: Become
    allow_init: bool
    deliver: Deliver
    pace: Pace


async def run_lane(  # noqa: PLR0913  # two things to do, four ways to do it by name
    route: Route,
    items: Sequence[Item],
    *,
    become: Become,
    deliver: Deliver,
    allow_init: bool = False,
    pace: Pace | None = None,
) -> TransportError | None:
    """Read the items in their order and deliver a capture for each, in the event loop, as soon as it is complete.

    A lane that hangs is closed and continued behind the item it hangs at, on the same connection. When the
    connection is lost, the rest is delivered with that problem and the error returned. Cancelling closes the
    script's standard input, which ends everything it started, and delivers the rest as dropped.
    """
    order = _Order(route=route, become=become, allow_init=allow_init, deliver=deliver, pace=pace or Pace())
    rest: tuple[Item, ...] = _readable(items, become, deliver)
    together = True
    while rest:
        attempt = _Attempt(order, rest, together=together)
        try:
            await attempt.run()
        except TransportError as error:
            attempt.reading.give_up_all(error.problem)
            return error
        except BaseException:
            attempt.reading.give_up_all(dropped("the audit was stopped before this was read"))
            raise
        rest, together = attempt.settle(), False
    return None


def _readable(items: Sequence[Item], become: Become, deliver: Deliver) -> tuple[Item, ...]:
    """The items that are to be read; the others are delivered at once."""
    readable: list[Item] = []
    for item in items:
        if (problem := refusal(item, become)) is None:
            readable.append(item)
        else:
            deliver(unfinished(item, problem))
    return tuple(readable)


class _Attempt:
    """One channel with one script."""

    def __init__(self, order: _Order, items: Sequence[Item], *, together: bool) -> None:
        self._order, self._together = order, together
        self._nonce = secrets.token_hex(16)
        self.reading = Reading(items, self._nonce, order.deliver, order.become, together=together)
        self._over = anyio.Event()  # complete or ended
        self._ended = anyio.Event()
        self._error: TransportError | None = None
        self._failure: Exception | None = None
        self._exit: int | None = None
        self._marks = self._all_marks = self._bytes = 0
        self._since = self._since_within = 0.0
        self._orders: Iterator[Order] | None = None  # about the present item; made when it is first looked at
        self._next: Order | None = None
        self._expired = False

    async def run(self) -> None:
        """Open, send, and listen until all is there, the channel has ended or the time is up.

        Raises:
            TransportError: the channel was not opened, or was lost before everything had come.
        """
        channel = await self._open()
        self._since = self._since_within = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            follow = anyio.CancelScope(shield=True)
            tasks.start_soon(self._follow, channel, follow)
            try:
                await self._guard(channel)
            finally:
                channel.close_input()
                with anyio.move_on_after(self._order.pace.linger, shield=True):
                    await self._ended.wait()
                channel.abandon()
                follow.cancel()
        if self._failure is not None:
            raise self._failure
        if self._error is not None and not self.reading.frames.complete:
            raise self._error

    def settle(self) -> tuple[Item, ...]:
        """Deliver the item the script broke at; what is left for a further script."""
        frames, reading = self.reading.frames, self.reading
        piece = under_way.piece if (under_way := reading.under_way) else None
        if frames.complete:
            if not self._together:
                reading.give_up_all(dropped("the script ended without an answer for this"))
        elif frames.marks == 0:
            reading.give_up_all(self._not_started())
        elif isinstance(piece, Batch):
            reading.take(piece)
        elif piece is not None:
            waited = anyio.current_time() - self._since
            problem = (
                timed_out(f"no end after {waited:.0f} s; its lane was closed")
                if self._expired
                else dropped(f"the shell on the target ended in the middle (exit status {self._exit})")
            )
            reading.give_up(piece, problem, waited)
        return reading.rest

    async def _open(self) -> Channel:
        """A channel; while the server refuses, wait for other lanes to end, for a bounded time."""
        order, pause = self._order, 0.05
        give_up_at = anyio.current_time() + order.pace.session
        while True:
            try:
                return await order.route.open(command(order.become), self._receive)
            except SessionRefused:
                if anyio.current_time() + pause > give_up_at:
                    raise
            await anyio.sleep(pause)
            pause = min(pause * 1.5, 1.0)

    async def _follow(self, channel: Channel, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await self._send(channel)
                self._exit = await channel.ended()
            except TransportError as error:
                self._error = error
            finally:
                self._ended.set()
                self._over.set()

    async def _send(self, channel: Channel) -> None:
        """A shell that ends before it has read everything says why on its own streams: listen on."""
        script = assemble(
            self.reading.pieces,
            nonce=self._nonce,
            tag=secrets.token_hex(16),
            become=self._order.become,
            allow_init=self._order.allow_init,
        )
        with suppress(TransportError):
            await channel.send(script.encode())

    async def _guard(self, channel: Channel) -> None:
        """Wait for the end; tell the target to end what takes too long, and stop listening if that does not help."""
        while not self._over.is_set():
            under_way, now = self.reading.under_way, anyio.current_time()
            left = self._deadline(under_way) - now
            if left <= 0:
                self._expired = True
                return
            while under_way is not None and (line := self._due(under_way, now)):
                with suppress(TransportError):  # the end of the channel is seen elsewhere
                    await channel.send(line.encode())
            with anyio.move_on_after(min(left, self._order.pace.tick)):
                await self._over.wait()

    def _due(self, under_way: UnderWay, now: float) -> str:
        """What is to be said about the present item now; empty when nothing is."""
        if self._orders is None:
            self._orders, self._next = orders(under_way, self._order.become), None
        if self._next is None:
            self._next = next(self._orders, (math.inf, ""))
        since = self._since if under_way.within is None else self._since_within
        after, line = self._next
        if now < since + after:
            return ""
        self._next = None
        return line

    def _deadline(self, under_way: UnderWay | None) -> float:
        """When the present piece is overdue. Bytes buy time, at a rate that a drip cannot pay."""
        pace, seconds = self._order.pace, self._order.pace.item
        if under_way is not None and (limit := allowed(under_way.piece, self._order.become)) is not None:
            seconds = limit + GIVE_UP_AFTER + pace.slack
        if self._marks == 0:
            seconds += pace.start
        return self._since + seconds + self._bytes / pace.rate

    def _receive(self, stream: Stream, data: bytes) -> None:
        frames = self.reading.frames
        try:
            frames.feed(stream, data)
        except Exception as error:  # noqa: BLE001  # ours, from `deliver`; an event loop would only log it
            self._failure = error
            self._over.set()
            return
        if (marks := self.reading.marks) != self._all_marks:
            self._all_marks, self._since_within, self._orders = marks, anyio.current_time(), None
        if frames.marks != self._marks:
            self._marks, self._bytes, self._since = frames.marks, 0, self._since_within
        else:
            self._bytes = min(self._bytes + len(data), _MOST_BOUGHT)
        if frames.complete:
            self._over.set()

    def _not_started(self) -> Problem:
        if self._expired:
            return timed_out(
                f"the login shell did not run anything within {self._order.pace.start:.0f} s",
                "Log in by hand and see what its start-up files wait for.",
            )
        frames = self.reading.frames
        return shell_problem(self._exit, frames.noise(Stream.OUT), frames.noise(Stream.ERR), self._order.become)


_MOST_BOUGHT = 1024 * KIB
