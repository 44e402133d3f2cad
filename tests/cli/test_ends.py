"""Ctrl-C in the middle of an audit."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.cli.conftest import Marked

pytestmark = pytest.mark.ssh
STUBBORN = (b"sleep\x00601", b"sleep\x00602")


def test_ctrl_c_leaves_nothing_behind(gapline: CommandLine, gauge: Path, marked: Marked) -> None:
    """Exit 130, no process on the target, not even one that ignores TERM or left its session, and no half a run."""
    gapline.more["PYTHONPATH"] = str(gauge)
    gapline.fleet(marked.server.host())
    command = gapline.start("audit", "--out", "out", "--agent", "host.stuck", "--agent", "host.ostype")
    for _ in range(3000):
        running = marked.left().values()
        if all(any(words in line for line in running) for words in STUBBORN):
            break
        time.sleep(0.02)
    else:
        pytest.fail(f"it did not get there: {command.poll()}")
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out) == (130, b"")
    assert err.decode().strip().splitlines()[-1].startswith("Interrupted")
    assert b"Traceback" not in err
    for _ in range(500):
        if not marked.left():
            break
        time.sleep(0.02)
    assert marked.left() == {}
    folder = gapline.here / "out"
    assert not (folder / "run.json").exists()
    assert not (folder / "report.html").exists()
    assert not list(folder.rglob("*.new"))
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert "agent.judged" in {event["event"] for event in events}
    assert not (gapline.state / "last-run").exists()
