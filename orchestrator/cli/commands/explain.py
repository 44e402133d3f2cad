"""`gapline explain`."""

from __future__ import annotations

import click


@click.command("explain")
@click.argument("code", metavar="CODE")
def command(*, code: str) -> int:
    """Say what a finding code means, which agent reports it and how to look at it again."""
    from gapline.orchestrator.cli.agent_docs import about_code, find_code, tell

    tell(about_code(*find_code(code)))
    return 0
