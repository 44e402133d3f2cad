"""`gapline doctor`."""

from __future__ import annotations

import click

from gapline.orchestrator.cli.selection import Selection, json_option, selects


@click.command("doctor")
@selects
@json_option
def command(*, selection: Selection, as_json: bool) -> int:
    """Check before an audit: reach, host key, login, privilege, tools, and what would be unknown and why.

    Makes the audit's reads once and keeps nothing.
    """
    from gapline.orchestrator.cli.checkup import doctor

    return doctor(selection, as_json=as_json)
