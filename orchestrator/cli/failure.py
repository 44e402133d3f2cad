"""How an error that ended a command is told: what, where, what to do."""

from __future__ import annotations

import os
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
        _red(f"error: {visible(str(error))}")
        if error.hint:
            click.echo(f"hint:  {visible(error.hint)}", err=True)
        return error.exit_code
    click.echo(visible("".join(traceback.format_exception(error))), err=True)
    _red(f"error: this is a bug of Gapline: {type(error).__name__}")
    click.echo("hint:  Please report it with the lines above.", err=True)
    return _DEFECT


def _red(text: str) -> None:
    """Click knows terminals, but not https://no-color.org."""
    click.secho(text, fg=None if os.environ.get("NO_COLOR") else "red", err=True)
