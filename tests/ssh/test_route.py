"""The route over a real OpenSSH server: streams, sessions, limits, drops."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from gapline.orchestrator.model.errors import ConnectionDropped, ProtocolFailed, SessionRefused
from gapline.orchestrator.transport.route import Route, Stream
from gapline.orchestrator.transport.ssh.dialer import Dialer
from tests.ssh.conftest import MakeDialer
from tests.ssh.output import Output, run
from tests.ssh.sshd import MakeSshd, Sshd

pytestmark = pytest.mark.ssh
MIB = 1024 * 1024


async def test_streams_and_status_are_exact(sshd: Sshd, dialer: Dialer) -> None:
    """Binary input comes back unchanged, the two streams stay apart, the exit status is the command's."""
    route = await dialer.connect(sshd.host())
    given = bytes(range(256)) * 5_000
    output = await run(route, "cat; echo apart >&2; exit 7", given)
    assert bytes(output.out) == given
    assert output.err == b"apart\n"
    assert output.status == 7
    await route.close()


async def test_one_connection_carries_all_sessions(sshd: Sshd, dialer: Dialer) -> None:
    """Three sessions at once are counted as three, and the server sees one connection."""
    route = await dialer.connect(sshd.host())
    outputs = await asyncio.gather(*(run(route, f"echo {number}") for number in range(3)))
    assert [bytes(output.out) for output in outputs] == [b"0\n", b"1\n", b"2\n"]
    assert (route.connections, route.sessions) == (1, 3)
    await route.close()
    assert sshd.log.count("Accepted publickey") == 1
    assert sshd.log.count("Starting session") == 3


async def test_a_signal_leaves_no_status(sshd: Sshd, dialer: Dialer) -> None:
    """A killed command has no exit status, and that is no drop."""
    route = await dialer.connect(sshd.host())
    assert (await run(route, "kill -9 $$")).status is None
    await route.close()


async def test_a_command_that_is_not_there_is_no_transport_error(sshd: Sshd, dialer: Dialer) -> None:
    """127 and the shell's words come back like any output."""
    route = await dialer.connect(sshd.host())
    output = await run(route, "gapline-no-such-command")
    assert output.status == 127
    assert b"not found" in output.err
    await route.close()


async def test_input_waits_for_a_slow_reader(sshd: Sshd, dialer: Dialer) -> None:
    """`send` returns only when the far side has room: 20 MiB do not pile up here."""
    route = await dialer.connect(sshd.host())
    output = Output()
    channel = await route.open("sleep 0.3; wc -c", output.receive)
    sending = asyncio.create_task(channel.send(b"x" * 20 * MIB))
    await asyncio.sleep(0.1)
    assert not sending.done()
    await sending
    channel.close_input()
    assert await channel.ended() == 0
    assert int(output.out) == 20 * MIB
    await route.close()


async def test_hundred_megabytes_need_constant_memory(sshd: Sshd, dialer: Dialer) -> None:
    """Output is pushed on as it comes; nothing is kept by the route."""
    route = await dialer.connect(sshd.host())
    start, seen, peak = resident(), 0, 0

    def receive(_stream: Stream, data: bytes) -> None:
        nonlocal seen, peak
        seen += len(data)
        peak = max(peak, resident())

    channel = await route.open("head -c 104857600 /dev/zero", receive)
    assert await channel.ended() == 0
    assert seen == 100 * MIB
    assert peak - start < 24 * MIB
    await route.close()


async def test_a_drop_in_mid_output_keeps_what_came(sshd: Sshd, dialer: Dialer) -> None:
    """All that arrived is delivered, then ConnectionDropped is raised, and the route opens nothing more."""
    route = await dialer.connect(sshd.host())
    output, started = Output(), asyncio.Event()

    def receive(stream: Stream, data: bytes) -> None:
        output.receive(stream, data)
        started.set()

    channel = await route.open("echo complete; sleep 600", receive)
    await started.wait()
    kill(sshd.children())
    with pytest.raises(ConnectionDropped) as caught:
        await channel.ended()
    assert output.out == b"complete\n"
    assert caught.value.hint
    with pytest.raises(ConnectionDropped):
        await route.open("true", output.receive)
    await route.close()


async def test_an_error_of_the_receiver_ends_its_channel_only(sshd: Sshd, dialer: Dialer) -> None:
    """The error reaches who waits for the channel; the connection goes on."""

    def receive(_stream: Stream, _data: bytes) -> None:
        message = "receiver broke"
        raise ValueError(message)

    route = await dialer.connect(sshd.host())
    channel = await route.open("echo anything", receive)
    with pytest.raises(ValueError, match="receiver broke"):
        await channel.ended()
    assert (await run(route, "echo alive")).out == b"alive\n"
    await route.close()


async def test_abandoning_frees_our_side_at_once(sshd: Sshd, dialer: Dialer) -> None:
    """A hanging command does not hold `ended`; later input and output go nowhere."""
    route = await dialer.connect(sshd.host())
    output = Output()
    channel = await route.open("sleep 600", output.receive)
    channel.abandon()
    channel.abandon()
    assert await channel.ended() is None
    await channel.send(b"too late")
    channel.close_input()
    assert (await run(route, "echo alive")).out == b"alive\n"
    await route.close()
    await route.close()


async def test_cancelling_ends_what_watches_its_input(sshd: Sshd, dialer: Dialer) -> None:
    """The end of the connection is the end of standard input on the target: no process is left there."""
    route = await dialer.connect(sshd.host())
    output, started = Output(), asyncio.Event()

    def receive(stream: Stream, data: bytes) -> None:
        output.receive(stream, data)
        started.set()

    async def work() -> None:
        try:
            channel = await route.open("exec 7<&0; sleep 600 & echo $!; read -r _ <&7; kill $!", receive)
            await channel.ended()
        finally:
            await route.close()

    task = asyncio.create_task(work())
    await started.wait()
    sleeper = int(output.out)
    assert Path(f"/proc/{sleeper}").exists()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await gone(sleeper)


@pytest.mark.parametrize("most", [1, 2])
async def test_max_sessions(make_sshd: MakeSshd, dialer: Dialer, most: int) -> None:
    """The session beyond MaxSessions is refused as such, and granted when one has ended."""
    route = await dialer.connect(make_sshd(f"MaxSessions {most}").host())
    output = Output()
    channels = [await route.open("read -r _; echo done", output.receive) for _ in range(most)]
    with pytest.raises(SessionRefused):
        await route.open("true", output.receive)
    assert route.sessions == most
    channels[0].close_input()
    await channels[0].ended()
    await when_granted(route)
    for channel in channels:
        channel.abandon()
    await route.close()


async def test_we_open_fewer_sessions_than_servers_grant(sshd: Sshd, make_dialer: MakeDialer) -> None:
    """Our own limit refuses like a server's, before it is asked."""
    route = await make_dialer(sessions_at_once=2).connect(sshd.host())
    output = Output()
    for _ in range(2):
        await route.open("read -r _", output.receive)
    with pytest.raises(SessionRefused, match="our own limit"):
        await route.open("true", output.receive)
    assert sshd.log.count("Starting session") == 2
    await route.close()


async def test_a_server_that_grants_no_session_at_all(make_sshd: MakeSshd, dialer: Dialer) -> None:
    """MaxSessions 0 is a fault of the set-up: nothing to wait for."""
    route = await dialer.connect(make_sshd("MaxSessions 0").host())
    with pytest.raises(ProtocolFailed, match="runs no command") as caught:
        await route.open("true", Output().receive)
    assert "MaxSessions 0" in caught.value.hint
    await route.close()


async def test_noise_of_banner_and_start_up_files_is_only_noise(
    make_sshd: MakeSshd, dialer: Dialer, tmp_path: Path
) -> None:
    """The banner stays outside of the streams; what start-up files print comes before the command's own output."""
    (tmp_path / "banner").write_text("Authorised use only\n" * 20)
    noise = 'echo Welcome; echo warning >&2; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
    server = make_sshd(f"Banner {tmp_path}/banner\nForceCommand {noise}")
    route = await dialer.connect(server.host())
    output = await run(route, "echo result; exit 4")
    assert output.out == b"Welcome\nresult\n"
    assert output.err == b"warning\n"
    assert output.status == 4
    await route.close()


async def test_a_login_shell_that_takes_two_seconds(make_sshd: MakeSshd, dialer: Dialer) -> None:
    """The session opens at once and the output comes when the shell is ready."""
    server = make_sshd('ForceCommand sleep 2; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"')
    route = await dialer.connect(server.host(connect_timeout=1.5))
    assert (await run(route, "cat", b"patience")).out == b"patience"
    await route.close()


async def when_granted(route: Route) -> Output:
    """Ask as a lane does: sshd closes a channel a moment before it counts its session as free."""
    while True:
        try:
            return await run(route, "true")
        except SessionRefused:
            await asyncio.sleep(0.05)


def resident() -> int:
    """Bytes of this process in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kill(processes: list[int]) -> None:
    """End processes of our own server, and nothing that we have not seen below it."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


async def gone(process: int) -> None:
    """Wait until a process has ended; one that nobody has waited for yet counts too."""
    for _ in range(1_000):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == "Z":
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"process {process} was left behind")
