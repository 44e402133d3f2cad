"""Reading leaves no trace: no file is created, written, renamed or removed, not even a temporary one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.collect.lane import run_lane
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat
from tests.shell.shells import ShellRoute, Way

CALLS = "open,openat,creat,mkdir,mkdirat,mknod,mknodat,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink"
CHANGES = re.compile(
    r"\b(?:O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_TMPFILE)\b|\b(?:creat|mk|unlink|rename|link|symlink)\w*\("
)
# Besides: lxc-attach looks with O_RDWR, but without O_CREAT, whether the container is just being created.
HARMLESS = re.compile(r'"/dev/(?:null|tty)"|"/var/lib/lxc/[^/]*/partial", O_RDWR\|O_CLOEXEC\) = -1 ENOENT')

SOURCES: list[Source] = [
    File("/proc/version"),
    File("/sys/kernel/mm/transparent_hugepage/enabled"),
    File("/nowhere/at/all"),
    Glob("/sys/class/net/*/mtu /etc/host*"),
    Stat("/dev/null /nowhere"),
    Command(("uname", "-a")),
    Command(("no-such-command",)),
    Command(("sleep", "50"), timeout=1),
    Command(("echo", "gpu"), wakes_gpu=True),
    Script("long", "echo " + "x" * 70_000),
    Script("big", "head -c 900000 /dev/zero", limit=300_000),
]


async def test_no_file_is_written(shell: Way, tmp_path: Path) -> None:
    """Every system call of a script that uses all kinds of sources, a time-out and a container that is not there."""
    if shutil.which("strace") is None:
        pytest.skip("there is no strace")
    log = tmp_path / "calls"
    items = [Item("local", source) for source in SOURCES]
    items.append(Item("local/9", File("/etc/hostname"), Binding("no-such-ct", "1", "/x", "/y"), enter="no-such-ct"))
    captures: list[Capture] = []
    route = ShellRoute(f"strace -f -qq -o {log} -e trace={CALLS} {shell.command}")
    await run_lane(route, items, become=Become.NONE, deliver=captures.append)
    await route.close()
    assert len(captures) == len(items)
    calls = log.read_text(errors="replace").splitlines()
    assert len(calls) > len(items)
    assert [line for line in calls if CHANGES.search(line) and not HARMLESS.search(line)] == []
