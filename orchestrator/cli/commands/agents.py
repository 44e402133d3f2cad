"""`gapline agents`."""

from __future__ import annotations

import click

from gapline.orchestrator.cli.selection import json_option


@click.command("agents")
@click.argument("agent_id", required=False, metavar="[ID]")
@json_option
def command(*, agent_id: str | None, as_json: bool) -> int:
    """List the agents, or everything about one: what it reads, its limits and the codes of its findings."""
    from gapline.orchestrator.cli.agent_docs import about, about_all, as_json_text, everyone, find, tell

    agents = everyone() if agent_id is None else (find(agent_id),)
    if as_json:
        click.echo(as_json_text(agents))
    else:
        tell(about_all(agents) if agent_id is None else about(agents[0]))
    return 0
