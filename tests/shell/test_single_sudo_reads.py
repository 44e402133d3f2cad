"""Least privilege for real: a user, sudo, and the sudoers file that the plan prints."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.collect.lane import run_lane
from gapline.orchestrator.collect.sudoers import sudoers
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat
from tests.shell.shells import ShellRoute

USER = "nobody"


def root_sources(folder: Path) -> list[Source]:
    """Reads that only root can make, with characters that sudoers and shells care about."""
    return [
        File(f"{folder}/{{ct}}.conf", root=True),
        Glob(f"{folder}/*.conf", root=True),
        Stat(f"{folder}/a,b:c=d* {folder}/129.conf", root=True),
        Command(("printf", "%s|%s|", "a  b\\ #!", '^*?[x]$ "q" \'', "=,:"), root=True),
        Command(("sleep", "30"), root=True, timeout=1),
        Script("id", "id -u"),
        File("/etc/passwd"),
    ]


async def collect(way: str, items: list[Item], become: Become = Become.SUDO_READS) -> list[Capture]:
    """One capture for each item, in their order."""
    captures: list[Capture] = []
    route = ShellRoute(way)
    await run_lane(route, items, become=become, deliver=captures.append)
    await route.close()
    found = {capture.source: capture for capture in captures}
    return [found[item.source.key] for item in items]


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A directory that only root can list."""
    if os.geteuid() != 0 or shutil.which("sudo") is None:
        pytest.skip("needs root, to become another user, and sudo")
    folder = tmp_path / "lxc"
    folder.mkdir(mode=0o700)
    for name in ("129.conf", "130.conf", "a,b:c=d e"):
        (folder / name).write_text(f"content of {name}\n")
    return folder


async def test_granted_reads_work_and_nothing_else(secrets: Path, tmp_path: Path) -> None:
    """With the printed file every single read is answered as root; one character more is refused."""
    bound = Binding("129", "1", "", "")
    items = [Item("h", source, bound) for source in root_sources(secrets)]
    more = [Item("h", File(f"{secrets}/130.conf", root=True)), Item("h", Command(("printf", "x"), root=True))]
    granted = tmp_path / "granted"
    granted.write_text(sudoers(items, USER))
    way = (
        f"exec unshare -m --propagation private sh -c 'mount -t tmpfs -o mode=755 none /etc/sudoers.d && "
        f"install -m 440 {granted} /etc/sudoers.d/gapline && exec runuser -u {USER} -- sh -s'"
    )
    one, several, stat, printed, slow, script, plain, *others = await collect(way, items + more)
    assert one.out == b"content of 129.conf\n"
    assert [path.rpartition("/")[2] for path in several.files()] == ["129.conf", "130.conf"]
    assert [line.text.rpartition("/")[2].split("|")[0] for line in stat.lines()] == ["a,b:c=d e", "129.conf"]
    assert printed.out == b'a  b\\ #!|^*?[x]$ "q" \'|=,:||'
    assert slow.problem is not None
    assert slow.problem.kind is ProblemKind.TIMED_OUT
    assert script.out == f"{65534}\n".encode()
    assert plain.problem is None
    assert [capture.problem.kind for capture in others if capture.problem] == [ProblemKind.DENIED] * 2
    assert all(b"content" not in capture.out for capture in others)


async def test_without_the_file_it_says_what_to_grant(secrets: Path) -> None:
    """A read that sudo refuses is denied, with the hint; whatever needs no root is read."""
    items = [Item("h", source, Binding("129", "1", "", "")) for source in root_sources(secrets)]
    *refused, script, plain = await collect(f"exec runuser -u {USER} -- sh -s", items)
    assert {capture.problem.kind for capture in refused if capture.problem} == {ProblemKind.DENIED}
    assert all("--sudoers" in capture.problem.hint for capture in refused if capture.problem)
    assert (script.problem, plain.problem) == (None, None)


async def test_whole_lane_refused(secrets: Path) -> None:
    """`sudo -n sh -s` for a user who needs a password: every item says so."""
    items = [Item("h", File("/proc/version")), Item("h", File("/etc/passwd"))]
    captures: list[Capture] = []

    class Sudo(ShellRoute):
        """A login as a user whose sudo wants a password."""

    route = Sudo(f"exec runuser -u {USER} -- sudo -n sh -s")
    await run_lane(route, items, become=Become.SUDO, deliver=captures.append)
    await route.close()
    assert {capture.problem.kind for capture in captures if capture.problem} == {ProblemKind.DENIED}
    assert len(captures) == len(items)
    assert secrets.exists()
