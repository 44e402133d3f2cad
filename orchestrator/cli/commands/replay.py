"""`gapline replay`."""

from __future__ import annotations

from pathlib import Path

import click

from gapline.orchestrator.cli.selection import Selection, json_option


@click.command("replay")
@click.argument("snapshot", type=click.Path(path_type=Path, file_okay=False))
@click.option("--playbook", default="full", show_default=True, metavar="NAME|FILE", help="By which limits.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Directory for run and report. Default: your state directory."
)
@json_option
def command(*, snapshot: Path, playbook: str, out: Path | None, as_json: bool) -> int:
    """Judge a stored snapshot again, with today's agents and limits. No machine is contacted."""
    from gapline.orchestrator.cli.replaying import replay_into

    return replay_into(out, snapshot, Selection(targets=(), fleet=None, playbook=playbook), as_json=as_json)
