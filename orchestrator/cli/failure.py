"""How an error that ended a command is told: what, where, what to do."""

from __future__ import annotations

import traceback

import click

from gapline.orchestrator.model.errors import AuditError
from gapline.reports.visible import visible

_DEFECT = 4


def tell(error: Exception) -> int:
    """Write it to standard error; the exit code."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, AuditError):
        click.secho(f"error: {visible(str(error))}", fg="red", err=True)
        if error.hint:
            click.echo(f"hint:  {visible(error.hint)}", err=True)
        return error.exit_code
    click.echo(visible("".join(traceback.format_exception(error))), err=True)
    click.secho(f"error: this is a bug of Gapline: {type(error).__name__}", fg="red", err=True)
    click.echo("hint:  Please report it with the lines above.", err=True)
    return _DEFECT
