"""A lane over a real OpenSSH server, through every fault: each item ends in a capture, nothing read before is lost."""

from __future__ import annotations

import asyncio
import os
import pwd
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.lane import Pace, run_lane
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import ConnectionDropped
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source
from gapline.orchestrator.transport.ssh.dialer import Dialer
from tests.ssh.sshd import QUIET, MakeSshd, Sshd

pytestmark = pytest.mark.ssh
VERSION = File("/proc/version")
PACE = Pace(start=20.0, item=10.0, slack=1.0, linger=0.5, session=20.0)


@dataclass
class Collected:
    """Captures by the key of their source."""

    captures: dict[str, Capture] = field(default_factory=dict)
    first: asyncio.Event = field(default_factory=asyncio.Event)

    def deliver(self, capture: Capture) -> None:
        """Take one."""
        assert capture.source not in self.captures, "delivered twice"
        self.captures[capture.source] = capture
        self.first.set()

    def kinds(self) -> dict[str, ProblemKind | None]:
        """The problem of each, None where there was none."""
        return {key: capture.problem.kind if capture.problem else None for key, capture in self.captures.items()}


def items(*sources: Source) -> tuple[Item, ...]:
    """All on one target."""
    return tuple(Item("pve1", source) for source in sources)


def script(name: str, text: str, timeout: float = 10.0, limit: int = 256 * 1024) -> Script:
    """A fragment that runs on the target."""
    return Script(name=name, text=text, timeout=timeout, limit=limit)


async def collect(dialer: Dialer, server: Sshd, sources: Sequence[Source], become: Become = Become.NONE) -> Collected:
    """One lane from beginning to end on a connection of its own."""
    route = await dialer.connect(server.host())
    collected = Collected()
    try:
        error = await run_lane(route, items(*sources), become=become, deliver=collected.deliver, pace=PACE)
    finally:
        await route.close()
    assert error is None
    assert len(collected.captures) == len(sources)
    return collected


@dataclass
class Marked:
    """A server whose sessions all carry a mark in their environment, by which what they leave behind is found."""

    server: Sshd
    mark: str

    def left(self) -> list[int]:
        """The processes that carry it."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if self.mark.encode() in path.read_bytes():
                    found.append(int(path.parent.name))
        return found

    def runs(self, command: bytes) -> bool:
        """Whether one of them is this command, with NUL between its words."""
        for process in self.left():
            with suppress(OSError):
                if command in Path(f"/proc/{process}/cmdline").read_bytes():
                    return True
        return False

    async def nothing_left(self) -> None:
        """Wait until there is none."""
        await until(lambda: not self.left())


async def until(true: Callable[[], bool]) -> None:
    """Wait for something that other processes do."""
    for _ in range(1_000):
        if true():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it did not come to that")


@pytest.fixture
def marked(make_sshd: MakeSshd) -> Iterator[Marked]:
    """Such a server."""
    mark = f"GAPLINE_TEST={secrets.token_hex(8)}"
    it = Marked(make_sshd(f"SetEnv {mark} {QUIET}"), mark)
    yield it
    for process in it.left():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


STUBBORN = script(
    "stubborn", "trap '' TERM HUP\nsleep 600 & setsid sleep 601 & nohup sleep 602 >/dev/null 2>&1 &\nwait", 500
)


async def test_files_globs_commands(sshd: Sshd, dialer: Dialer) -> None:
    """The plain case, byte for byte what the kernel says, on one session."""
    route = await dialer.connect(sshd.host())
    collected = Collected()
    missing = File("/proc/no-such-file")
    glob, echo = Glob("/proc/sys/kernel/os*"), Command(("printf", "%s|", "a b", "c'd"))
    await run_lane(route, items(VERSION, missing, glob, echo), become=Become.NONE, deliver=collected.deliver, pace=PACE)
    assert collected.captures[VERSION.key].out == Path("/proc/version").read_bytes()
    assert collected.captures[echo.key].out == b"a b|c'd|"
    assert set(collected.captures[glob.key].files()) == {"/proc/sys/kernel/osrelease", "/proc/sys/kernel/ostype"}
    assert collected.kinds() == {VERSION.key: None, missing.key: ProblemKind.MISSING, glob.key: None, echo.key: None}
    assert (route.connections, route.sessions) == (1, 1)
    await route.close()


async def test_a_command_that_hangs(marked: Marked, dialer: Dialer) -> None:
    """It is timed out on the target, what it had said is kept, the items after it are read, no process stays."""
    hangs = script("hangs", "echo before; sleep 600", 1.0)
    collected = await collect(dialer, marked.server, [hangs, VERSION])
    assert collected.kinds() == {hangs.key: ProblemKind.TIMED_OUT, VERSION.key: None}
    assert collected.captures[hangs.key].out == b"before\n"
    await marked.nothing_left()


async def test_hundred_megabytes(sshd: Sshd, dialer: Dialer) -> None:
    """Cut at the limit, said so, and the next item is exact."""
    big = script("big", "head -c 104857600 /dev/zero", 60.0)
    collected = await collect(dialer, sshd, [big, VERSION])
    capture = collected.captures[big.key]
    assert capture.truncated
    assert capture.out == bytes(256 * 1024)
    assert collected.captures[VERSION.key].out == Path("/proc/version").read_bytes()


async def test_binary_output(sshd: Sshd, dialer: Dialer, tmp_path: Path) -> None:
    """All byte values, line ends and things that look like frames survive."""
    data = bytes(range(256)) * 100 + b"\n@0123456789abcdef0123456789abcdef e 0 0 1 2\n\r\n\0no end"
    path = tmp_path / "binary"
    path.write_bytes(data)
    collected = await collect(dialer, sshd, [File(str(path))])
    assert collected.captures[f"file:{path}"].out == data


async def test_a_drop_in_the_middle(marked: Marked, dialer: Dialer) -> None:
    """What was complete stays, the broken item keeps what came of it, the rest says that it was dropped."""
    route = await dialer.connect(marked.server.host())
    collected = Collected()
    sources: list[Source] = [VERSION, script("half", "echo half; sleep 600", 500), File("/proc/uptime")]
    lane = asyncio.create_task(
        run_lane(route, items(*sources), become=Become.NONE, deliver=collected.deliver, pace=PACE)
    )
    await collected.first.wait()
    await until(lambda: marked.runs(b"sleep\x00600"))
    for process in marked.server.children():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    assert isinstance(await lane, ConnectionDropped)
    dropped = ProblemKind.DROPPED
    assert collected.kinds() == {VERSION.key: None, "script:half": dropped, "file:/proc/uptime": dropped}
    await route.close()
    await marked.nothing_left()


@pytest.mark.parametrize("most", [1, 2])
async def test_three_lanes_where_fewer_sessions_are_granted(make_sshd: MakeSshd, dialer: Dialer, most: int) -> None:
    """Lanes that are refused wait for the others, and all is read."""
    route = await dialer.connect(make_sshd(f"MaxSessions {most}").host())
    collected = Collected()
    lanes = [items(script(f"lane{number}", f"sleep 0.2; echo {number}")) for number in range(3)]
    errors = await asyncio.gather(
        *(run_lane(route, lane, become=Become.NONE, deliver=collected.deliver, pace=PACE) for lane in lanes)
    )
    assert errors == [None] * 3
    assert sorted(capture.out for capture in collected.captures.values()) == [b"0\n", b"1\n", b"2\n"]
    assert (route.connections, route.sessions) == (1, 3)
    await route.close()


async def test_noise_before_the_first_frame(make_sshd: MakeSshd, dialer: Dialer) -> None:
    """What start-up files print is in no capture."""
    noise = 'ForceCommand echo "Welcome to pve1"; echo warning >&2; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
    collected = await collect(dialer, make_sshd(noise), [VERSION])
    capture = collected.captures[VERSION.key]
    assert (capture.out, capture.err) == (Path("/proc/version").read_bytes(), b"")


async def test_real_start_up_files(make_sshd: MakeSshd, dialer: Dialer, tmp_path: Path) -> None:
    """The shell bash reads ~/.bashrc when sshd starts it; a noisy and slow one harms nothing."""
    if not pwd.getpwuid(os.geteuid()).pw_shell.endswith("bash"):
        pytest.skip("the login shell is not bash")
    (tmp_path / ".bashrc").write_text("echo from bashrc\necho oops >&2\nsleep 2\ncd /proc\nalias cat=false\n")
    server = make_sshd(f"SetEnv HOME={tmp_path}")
    collected = await collect(dialer, server, [VERSION, Command(("cat", "/proc/uptime"))])
    assert set(collected.kinds().values()) == {None}
    assert collected.captures[VERSION.key].out == Path("/proc/version").read_bytes()


async def test_a_login_shell_that_takes_two_seconds(make_sshd: MakeSshd, dialer: Dialer) -> None:
    """It costs its two seconds once."""
    server = make_sshd('ForceCommand sleep 2; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"')
    collected = await collect(dialer, server, [VERSION, Command(("echo", "done"))])
    assert set(collected.kinds().values()) == {None}


async def test_a_login_shell_that_never_gets_there(make_sshd: MakeSshd, dialer: Dialer) -> None:
    """Given up after its time, with a problem that names it."""
    route = await dialer.connect(make_sshd("ForceCommand sleep 600").host())
    collected = Collected()
    pace = Pace(start=0.3, item=0.3, linger=0.2)
    lane = run_lane(route, items(VERSION), become=Become.NONE, deliver=collected.deliver, pace=pace)
    assert await lane is None
    assert collected.kinds() == {VERSION.key: ProblemKind.TIMED_OUT}
    await route.close()


async def test_no_shell_at_all(make_sshd: MakeSshd, dialer: Dialer) -> None:
    """`nologin` and its words are the problem."""
    server = make_sshd("ForceCommand echo This account is not available; exit 1")
    collected = await collect(dialer, server, [VERSION])
    assert collected.kinds() == {VERSION.key: ProblemKind.FAILED}
    problem = collected.captures[VERSION.key].problem
    assert problem is not None
    assert "This account is not available" in problem.detail


@pytest.mark.parametrize("how", ["cancelled", "abort", "route closed", "killed"])
async def test_no_process_is_left_behind(marked: Marked, dialer: Dialer, how: str) -> None:
    """Whatever ends the audit, nothing goes on there: not what ignores TERM, not what has left its session."""
    route = await dialer.connect(marked.server.host())
    collected = Collected()
    lane = asyncio.create_task(
        run_lane(route, items(VERSION, STUBBORN), become=Become.NONE, deliver=collected.deliver, pace=PACE)
    )
    await collected.first.wait()
    await until(lambda: len(marked.left()) >= 5)
    if how == "cancelled":
        lane.cancel()
    elif how == "abort":
        route._connection.abort()
    elif how == "route closed":
        await route.close()
    else:
        for process in marked.server.children()[:1]:
            os.kill(process, signal.SIGKILL)
    with suppress(asyncio.CancelledError):
        await lane
    await marked.nothing_left()
    assert collected.kinds() == {VERSION.key: None, STUBBORN.key: ProblemKind.DROPPED}
    await route.close()


@pytest.fixture
def ordinary_user(tmp_path: Path) -> Iterator[str]:
    """A user without any privilege, made for the test and removed with it."""
    if os.geteuid() != 0 or shutil.which("useradd") is None or shutil.which("sudo") is None:
        pytest.skip("needs root, useradd and sudo")
    name = f"gapline-{secrets.token_hex(4)}"
    home = tmp_path / "ordinary"
    home.mkdir(mode=0o755)
    subprocess.run(["useradd", "-M", "-d", str(home), "-s", "/bin/sh", "-p", "*", name], check=True)
    yield name
    subprocess.run(["userdel", name], check=True, capture_output=True)


def let_in(server: Sshd) -> None:
    """Let the user who logs in get to authorized_keys: sshd reads it as that user."""
    for path in (server.directory, *server.directory.parents):
        if path.name.startswith(("pytest-", "test_", "sshd")):
            path.chmod(0o755)


async def test_sudo_that_wants_a_password(make_sshd: MakeSshd, dialer: Dialer, ordinary_user: str) -> None:
    """Typed as denied, with what to grant; nothing hangs at a prompt."""
    server = make_sshd()
    let_in(server)
    route = await dialer.connect(server.host(user=ordinary_user))
    collected = Collected()
    lane = run_lane(route, items(File("/etc/shadow")), become=Become.SUDO, deliver=collected.deliver, pace=PACE)
    assert await lane is None
    await route.close()
    problem = collected.captures["file:/etc/shadow"].problem
    assert problem is not None
    assert problem.kind is ProblemKind.DENIED
    assert "sudo" in problem.detail
    assert problem.hint


async def test_without_privilege_a_read_is_denied_and_not_empty(
    make_sshd: MakeSshd, dialer: Dialer, ordinary_user: str
) -> None:
    """A read that was not allowed is a problem of its own, not an empty answer."""
    server = make_sshd()
    let_in(server)
    route = await dialer.connect(server.host(user=ordinary_user))
    collected = Collected()
    sources = items(File("/etc/shadow"), Command(("dmesg",), root=True), VERSION)
    assert await run_lane(route, sources, become=Become.NONE, deliver=collected.deliver, pace=PACE) is None
    denied = ProblemKind.DENIED
    assert collected.kinds() == {"file:/etc/shadow": denied, "command:dmesg": denied, VERSION.key: None}
    await route.close()
