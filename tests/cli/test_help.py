"""Help is quick and complete."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from gapline.orchestrator.cli.app import _Commands, app

HEAVY = ("anyio", "asyncio", "asyncssh", "hypothesis", "jinja2", "pydantic", "rich", "structlog", "yaml")


def test_help_imports_nothing_heavy() -> None:
    """What a command needs is imported when it runs."""
    code = (
        "import sys\nfrom gapline.orchestrator.cli.app import main\nsys.argv = ['gapline', '--help']\n"
        "try:\n main()\nexcept SystemExit as end:\n assert end.code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert "Exit codes: 0 clean" in done.stdout


@pytest.mark.parametrize("name", _Commands.lines)
def test_every_command_explains_itself(name: str) -> None:
    """Its module is there, and its page says how it is used."""
    done = CliRunner().invoke(app, [name, "--help"])
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"Usage: app {name} ")
    assert name in CliRunner().invoke(app, ["--help"]).output
