"""`gapline plan`."""

from __future__ import annotations

import click

from gapline.orchestrator.cli.selection import Selection, json_option, selects


@click.command("plan")
@selects
@click.option(
    "--sudoers", metavar="USER", help="Print the sudoers file that lets USER make the root reads, and nothing else."
)
@json_option
def command(*, selection: Selection, sudoers: str | None, as_json: bool) -> int:
    """Print every read an audit would make: where, with which privilege, for which agents.

    Nothing is contacted. Which containers a host has is only known on the host, so their reads are printed once, with
    {ct}, {init}, {config} and {cgroup} in place of their name, init's pid, configuration file and cgroup.
    """
    from gapline.orchestrator.cli.planned import plan_as_json, tell_plan, tell_sudoers
    from gapline.orchestrator.cli.selection import plan_of

    plan = plan_of(selection)
    if sudoers is not None:
        return tell_sudoers(plan, sudoers)
    click.echo(plan_as_json(plan)) if as_json else tell_plan(plan)
    return 0
