"""`gapline runbook`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("runbook")
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="[RUN]")
@click.option("--target", metavar="TARGET", help="One host or container of the run.")
@click.option("--format", "form", type=click.Choice(("markdown", "sh")), default="markdown", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File. Default: standard output.")
def command(*, run: Path | None, target: str | None, form: str, output: Path | None) -> int:
    """Turn all remedies of a run into one ordered plan: live, container restarts, one reboot. Nothing is carried out.

    RUN is a run's directory or its run.json; without it, the last run.
    """
    from gapline.orchestrator.cli.reporting import runbook_of

    return runbook_of(run, target, form, output)
