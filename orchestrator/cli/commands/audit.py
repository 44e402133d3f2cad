"""`gapline audit`."""

from __future__ import annotations

from pathlib import Path

import click

from gapline.orchestrator.cli.selection import (
    Selection,
    fail_on_option,
    json_option,
    playbook_and_agents,
    targets_and_fleet,
)


@click.command("audit")
@targets_and_fleet
@playbook_and_agents
@fail_on_option
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where run.json and report.html go. Default: your state directory."
)
@json_option
def command(
    targets: tuple[str, ...],
    fleet: Path | None,
    playbook: str,
    agents: tuple[str, ...],
    allow_init: bool,
    fail_on: str | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Audit hosts and their GPU containers.

    A TARGET is user@host[:port], a name or group of the fleet file, HOST/CONTAINER, or local. Without one the whole
    fleet is audited. Nothing is installed or written on the targets; see `gapline plan` for every read.
    """
    from gapline.orchestrator.cli.auditing import audit_into
    from gapline.orchestrator.cli.selection import plan_of

    selection = Selection(
        targets=targets, fleet=fleet, playbook=playbook, agents=agents, fail_on=fail_on, allow_init=allow_init
    )
    return audit_into(out, plan_of(selection), as_json=as_json)
