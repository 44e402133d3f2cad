"""`gapline report`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="[RUN]")
@click.option("--format", "form", type=click.Choice(("html", "json", "terminal")), default="html", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="File. Default: standard output.")
def command(*, run: Path | None, form: str, output: Path | None) -> int:
    """Write a stored run in another form. RUN is a run's directory or its run.json; without it, the last run."""
    from gapline.orchestrator.cli.reporting import report

    return report(run, form, output)
