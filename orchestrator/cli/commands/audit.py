"""`gapline audit`."""

from __future__ import annotations

from pathlib import Path

import click

from gapline.orchestrator.cli.selection import Selection, json_option, selects_and_fails


@click.command("audit")
@selects_and_fails
@click.option(
    "--out", type=click.Path(path_type=Path), help="Directory for run and report. Default: your state directory."
)
@json_option
def command(*, selection: Selection, out: Path | None, as_json: bool) -> int:
    """Audit hosts and their GPU containers.

    A TARGET is user@host[:port], a name or group of the fleet file, HOST/CONTAINER, or local. Without one the whole
    fleet is audited. Nothing is installed or written on the targets; see `gapline plan` for every read.
    """
    from gapline.orchestrator.cli.auditing import audit_into
    from gapline.orchestrator.cli.selection import plan_of

    return audit_into(out, plan_of(selection), selection, as_json=as_json)
