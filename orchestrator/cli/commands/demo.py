"""`gapline demo`."""

from __future__ import annotations

from pathlib import Path

import click

from gapline.orchestrator.cli.selection import json_option


@click.command("demo")
@click.argument("directory", required=False, metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False))
@json_option
def command(*, directory: Path | None, as_json: bool) -> int:
    """Show the worked example: a real audit over SSH of three invented hosts.

    A server on this machine's loopback answers from recorded captures; collector, agents, merger and report are the
    ones of every audit. Nothing else is contacted, and your SSH keys and settings are not used. Writes run.json and
    report.html to DIR (default: gapline-demo here), and to DIR/repaired what they become after the repair.
    """
    from gapline.orchestrator.cli.demonstrating import demonstrate

    return demonstrate(directory, as_json=as_json)
