"""`gapline rerun`."""

from __future__ import annotations

from pathlib import Path

import click

from gapline.orchestrator.cli.selection import json_option


@click.command("rerun")
@click.argument("agents", nargs=-1, required=True, metavar="AGENT...")
@click.option("--target", "targets", multiple=True, metavar="T", help="Only this target of the run; repeatable.")
@click.option("--run", type=click.Path(path_type=Path), metavar="RUN", help="A run's directory. Default: the last run.")
@json_option
def command(*, agents: tuple[str, ...], targets: tuple[str, ...], run: Path | None, as_json: bool) -> int:
    """Run agents again after a fix, merge the result into the last run, and print before and after.

    Only what these agents and the pair agents on them need is read.
    """
    from gapline.orchestrator.cli.rerunning import rerun

    return rerun(agents, targets, run, as_json=as_json)
