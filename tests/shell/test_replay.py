"""What was read from a real shell, stored, and replayed, is the same again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.lane import run_lane
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat
from gapline.orchestrator.snapshot import SnapshotWriter, read
from gapline.orchestrator.transport.replay import ReplayRoute
from tests.shell.shells import Way, collect

SOURCES: list[Source] = [
    File("/proc/version"),
    File("/proc/filesystems"),
    File("/sys/kernel/mm/transparent_hugepage/enabled"),
    File("/etc/passwd", limit=20),
    File("/nowhere"),
    File("/dev/zero"),
    Glob("/sys/class/net/lo/* /nowhere/*"),
    Stat("/dev/null /nowhere"),
    Command(("no-such-command",), package="nowhere-utils"),
    Command(("sh", "-c", "echo half; exec sleep 9"), timeout=1),
    Command(("nvidia-smi",), wakes_gpu=True),
    Script("both", "echo out; echo err >&2; exit 3"),
    Script("binary", "head -c 1000 /dev/urandom"),
]


async def replay(captures: dict[str, Capture], sources: list[Source]) -> list[Capture]:
    """The captures that a lane gets from a replay."""
    back: list[Capture] = []
    route = ReplayRoute("local", lambda _, key: captures.get(key))
    items = [Item("local", source) for source in sources]
    assert await run_lane(route, items, become=Become.NONE, deliver=back.append) is None
    found = {capture.source: capture for capture in back}
    return [found[source.key] for source in sources]


async def test_same_captures_again(shell: Way, tmp_path: Path) -> None:
    """Through the directory and back: output, errors, status, duration, what was cut, every problem."""
    captures = await collect(shell, SOURCES)
    writer = SnapshotWriter(tmp_path / "s", version="1", created=datetime(2026, 12, 1, tzinfo=UTC))
    writer.write("local", captures)
    writer.finish()
    stored = dict(read(tmp_path / "s").captures("local"))
    assert list(stored.values()) == captures
    assert await replay(stored, SOURCES) == captures


async def test_what_is_not_stored_is_missing() -> None:
    """A newer agent's sources on an older snapshot look like things that the machine does not have."""
    captures = await replay({}, SOURCES)
    kinds = {
        type(source): capture.problem and capture.problem.kind
        for source, capture in zip(SOURCES, captures, strict=True)
    }
    assert kinds == {
        File: ProblemKind.MISSING,
        Glob: ProblemKind.MISSING,
        Stat: ProblemKind.MISSING,
        Command: ProblemKind.COMMAND_MISSING,
        Script: ProblemKind.FAILED,
    }
