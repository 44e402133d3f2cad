"""What is on the target is what is captured: byte by byte, in every shell, as every user."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Stat
from tests.shell.shells import Way, collect

CONTENTS = {
    "one line": b"1\n",
    "no final line feed": b"always [madvise] never",
    "empty": b"",
    "line feed only": b"\n",
    "two lines": b"a\nb\n",
    "blanks": b"  \t x \t \n",
    "backslashes": b"a\\nb\\\\ %s %d\n",
    "binary": bytes(range(256)) * 20,
    "NUL": b"\0\0\n\0",
    "like a marker": b"\n@" + b"ab" * 16 + b" e 0 0 1 1\n\n@x z\n",
    "-n": b"an option?\n",
    "quote'\"$(id)`id`": b"a name that a shell would run\n",
}


async def test_files(way: Way, shared: Path) -> None:
    """Content of every shape comes back as it is."""
    for name, content in CONTENTS.items():
        (shared / name).write_bytes(content)
    captures = await collect(way, [File(str(shared / name)) for name in CONTENTS])
    assert {Path(one.shown).name: one.out for one in captures} == CONTENTS
    assert all(one.problem is None and one.err == b"" and one.exit == 0 for one in captures)


async def test_kernel_files(way: Way) -> None:
    """Files of /proc and /sys: one line or many, with and without a line feed at the end."""
    paths = [
        "/proc/version",
        "/proc/cmdline",
        "/proc/sys/kernel/osrelease",
        "/proc/sys/kernel/random/boot_id",
        "/proc/sys/net/ipv4/ip_local_port_range",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/cpu0/uevent",
        "/sys/class/net/lo/address",
        "/sys/class/net/lo/uevent",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/proc/1/limits",
        "/proc/filesystems",
    ]
    there = [path for path in paths if Path(path).exists()]
    captures = await collect(way, [File(path) for path in there])
    assert {one.shown: one.out for one in captures} == {path: Path(path).read_bytes() for path in there}


async def test_absent_and_denied_are_told_apart(way: Way, shared: Path) -> None:
    """Missing is missing, denied is denied, and a file that cannot be read says what the kernel said."""
    (shared / "secret").write_text("x")
    (shared / "secret").chmod(0o000)
    (shared / "closed").mkdir(mode=0o700)
    (shared / "closed" / "file").write_text("x")
    missing, below, sysfs, secret, closed, folder = await collect(
        way,
        [File(str(shared / name)) for name in ("nowhere", "secret/below")]
        + [File("/sys/class/net/nowhere/mtu")]
        + [File(str(shared / name)) for name in ("secret", "closed/file", "closed")],
    )
    assert [one.problem and one.problem.kind for one in (missing, below, sysfs)] == [ProblemKind.MISSING] * 3
    denied = None if way.root else ProblemKind.DENIED
    assert [one.problem and one.problem.kind for one in (secret, closed)] == [denied, denied]
    assert folder.problem is not None
    assert folder.problem.kind in (ProblemKind.FAILED, ProblemKind.DENIED)


async def test_pipes_devices_and_sockets_hold_nothing_up(way: Way, shared: Path) -> None:
    """Only regular files are opened: a pipe without a writer would wait for ever."""
    os.mkfifo(shared / "pipe", 0o666)
    (shared / "link").symlink_to("pipe")
    (shared / "text").write_text("here\n")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(shared / "socket"))
        *files, glob = await collect(
            way,
            [File(str(shared / name)) for name in ("pipe", "link", "socket")]
            + [File("/dev/zero"), File("/dev/tty"), Glob(f"{shared}/*")],
        )
    assert [one.problem and one.problem.kind for one in files] == [ProblemKind.FAILED] * 5
    assert glob.out == f"{shared}/text:here\n".encode()
    assert glob.problem is None


async def test_patterns(way: Way, shared: Path) -> None:
    """Names with colons, blanks and quotes; what matches nothing is absent only if nothing else matches."""
    folder = shared / "it's $HOME [x]"
    for name in ("0000:c1:00.0", "a b", "empty"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text("" if name == "empty" else "first\nsecond: line\n")
    whole = f"{shared}/it's?$HOME?[x]/*/file".replace(" ", "?")
    every, partly, none = await collect(way, [Glob(whole), Glob(f"{whole} {shared}/no/*"), Glob(f"{shared}/no/*")])
    assert [len(lines) for lines in every.files().values()] == [2, 2]
    assert {Path(path).parent.name for path in every.files()} == {"0000:c1:00.0", "a b"}
    assert every.problem is None
    assert partly.files().keys() == every.files().keys()
    assert partly.problem is None
    assert none.problem is not None
    assert none.problem.kind is ProblemKind.MISSING


async def test_partly_denied_pattern_is_a_problem(way: Way, shared: Path) -> None:
    """One file of many that may not be read makes the whole incomplete; what was read is kept."""
    for name in ("a", "b"):
        (shared / name).write_text(name + "\n")
    (shared / "b").chmod(0)
    (one,) = await collect(way, [Glob(f"{shared}/*")])
    assert f"{shared}/a:a\n".encode() in one.out
    assert (one.problem is None) == way.root


async def test_stat(way: Way, shared: Path) -> None:
    """Type, device numbers in hex, mode in octal and owner, links not followed."""
    (shared / "link").symlink_to("/dev/null")
    null, none = await collect(way, [Stat(f"/dev/null {shared}/link {shared}/no*"), Stat(f"{shared}/no*")])
    link = os.lstat(shared / "link")
    assert null.text.splitlines() == [
        "/dev/null|character special file|1|3|666|0|0",
        f"{shared}/link|symbolic link|0|0|777|{link.st_uid}|{link.st_gid}",
    ]
    assert null.problem is None
    assert none.problem is not None
    assert none.problem.kind is ProblemKind.MISSING


async def test_commands(way: Way) -> None:
    """Arguments arrive as they are, both streams and the exit status come back, the environment is fixed."""
    hostile = "a  b $(id) `id` ' \" * \\ \n;&|"
    printed, failing, missing, environment, stdin = await collect(
        way,
        [
            Command(("printf", "%s|%s", hostile, "")),
            Command(("sh", "-c", "echo out; echo err >&2; exit 7")),
            Command(("no-such-command-here", "-x"), package="nowhere-utils"),
            Command(("env",)),
            Command(("cat",)),
        ],
    )
    assert printed.out == f"{hostile}|".encode()
    assert (failing.out, failing.err, failing.exit) == (b"out\n", b"err\n", 7)
    assert failing.problem is not None
    assert failing.problem.kind is ProblemKind.FAILED
    assert missing.problem is not None
    assert (missing.problem.kind, missing.problem.hint) == (ProblemKind.COMMAND_MISSING, "apt install nowhere-utils")
    assert {"LC_ALL=C", "GTAG"} <= {
        line if line.startswith("LC_ALL") else line.split("=")[0] for line in environment.text.splitlines()
    }
    assert stdin.out == b""


async def test_scripts_know_their_container(way: Way) -> None:
    """$CT, $INIT, $CONFIG and $CGROUP are what the item is bound to, whatever characters they hold."""
    text = 'printf "%s|%s|%s|%s" "$CT" "$INIT" "$CONFIG" "$CGROUP"; exit 0'
    one, two = Binding("a'b $(id)", "17", "/etc/pve/lxc/1.conf", "/lxc/1"), Binding("2", "18", "/c", "/lxc/2")
    script = Script("who", text)
    captures = await collect(way, [Item("h/1", script, one), Item("h/2", script, two), Item("h", script)])
    assert [capture.text for capture in captures] == [
        "a'b $(id)|17|/etc/pve/lxc/1.conf|/lxc/1",
        "2|18|/c|/lxc/2",
        "|||",
    ]


async def test_placeholders_are_literal(way: Way, shared: Path) -> None:
    """A value with wildcards or shell syntax names exactly one file."""
    for name in ("*", "other", "$(id)"):
        (shared / name).mkdir()
        (shared / name / "file").write_text(name)
    bound = [
        Item(f"t{n}", Glob(f"{shared}/{{ct}}/*"), Binding(ct, "1", "", "/")) for n, ct in enumerate(("*", "$(id)"))
    ]
    captures = await collect(way, bound)
    assert [capture.out for capture in captures] == [
        f"{shared}/*/file:*\n".encode(),
        f"{shared}/$(id)/file:$(id)\n".encode(),
    ]


async def test_root_reads_are_honest(way: Way) -> None:
    """Without root a source that needs it is a problem, not a short answer."""
    captures = await collect(way, [File("/proc/version", root=True), Script("s", "echo x", root=True)])
    kinds = {capture.problem.kind if capture.problem else None for capture in captures}
    assert kinds == ({None} if way.root else {ProblemKind.DENIED})


async def test_gpu_is_not_woken(way: Way) -> None:
    """Where the driver is not up, a command that could load it is withheld."""
    (one,) = await collect(way, [Command(("echo", "woken"), wakes_gpu=True)])
    if Path("/proc/driver/nvidia").exists() and Path("/dev/nvidiactl").exists():
        assert one.out == b"woken\n"
    else:
        assert one.problem is not None
        assert one.problem.kind is ProblemKind.WITHHELD
        assert one.out == b""


async def test_big_output(way: Way) -> None:
    """The beginning is kept, the rest counted as cut: locally, and on the target where a source may be big."""
    local, remote, whole = await collect(
        way,
        [
            Command(("head", "-c", "3000000", "/dev/zero"), limit=1000),
            Script("big", "head -c 3000000 /dev/zero", limit=400_000),
            Script("whole", "head -c 400000 /dev/zero; exit 3", limit=400_000),
        ],
    )
    assert (len(local.out), local.truncated, local.problem) == (1000, True, None)
    assert (len(remote.out), remote.truncated, remote.problem) == (400_000, True, None)
    assert (len(whole.out), whole.truncated, whole.exit) == (400_000, False, 3)
