"""A process that not even KILL can end costs its own item, and nothing behind it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File, Script
from tests.shell.shells import Way, collect, processes

TOOLS = ("mke2fs", "mount", "umount", "fsfreeze")


def run(*argv: str) -> None:
    """Run a tool of the set-up."""
    subprocess.run(argv, check=True, capture_output=True, timeout=60)


@pytest.fixture
def frozen(tmp_path: Path) -> Iterator[Path]:
    """A mounted file system that lets nobody write until it is thawed: writers wait in state D."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to freeze a file system")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        pytest.skip(f"there is no {', '.join(missing)}")
    image, folder = tmp_path / "image", tmp_path / "frozen"
    folder.mkdir()
    run("truncate", "-s", "8M", str(image))
    run("mke2fs", "-q", "-t", "ext4", str(image))
    try:
        run("mount", "-o", "loop", str(image), str(folder))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device can be mounted here: {error.stderr.decode().strip()}")
    (folder / "file").write_text("there\n")
    run("sync")
    run("fsfreeze", "-f", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["fsfreeze", "-u", str(folder)], check=False, capture_output=True)
        run("umount", str(folder))


async def test_stuck_command_is_abandoned_in_its_lane(shell: Way, frozen: Path) -> None:
    """The target gives it up by itself, and the same lane goes on."""
    mark = f"{frozen}/stuck"
    captures = await collect(
        shell,
        [
            File("/proc/version"),
            Command(("touch", mark), timeout=1),
            Script("stuck", f"echo begun; touch {mark}", timeout=1),
            Script("big", f"echo begun; touch {mark}", timeout=1, limit=1_000_000),
            File("/proc/filesystems"),
        ],
    )
    kinds = [capture.problem.kind if capture.problem else None for capture in captures]
    assert kinds == [None, *[ProblemKind.TIMED_OUT] * 3, None]
    assert "stuck in the kernel" in str(captures[1].problem)
    assert captures[2].out == b"begun\n"
    assert processes(mark)
    run("fsfreeze", "-u", str(frozen))
    with anyio.fail_after(10):
        while processes(mark):  # noqa: ASYNC110
            await anyio.sleep(0.02)
    run("fsfreeze", "-f", str(frozen))
