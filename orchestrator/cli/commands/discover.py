"""`gapline discover`."""

from __future__ import annotations

import click

from gapline.orchestrator.cli.selection import Selection, json_option, selects_targets


@click.command("discover")
@selects_targets
@json_option
def command(*, selection: Selection, as_json: bool) -> int:
    """List the GPUs and containers of hosts, and why a container counts as a GPU container."""
    from gapline.orchestrator.cli.discovering import discover

    return discover(selection, as_json=as_json)
