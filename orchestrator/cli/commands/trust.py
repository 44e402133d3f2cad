"""`gapline trust`."""

from __future__ import annotations

from pathlib import Path

import click

from gapline.orchestrator.cli.selection import Selection, selects_targets


@click.command("trust")
@selects_targets
@click.option("--fingerprint", metavar="SHA256:…", help="Record the key only if it is this one, without asking.")
@click.option(
    "--known-hosts", type=click.Path(path_type=Path, dir_okay=False), help="Where to. Default: what ssh would use."
)
def command(*, selection: Selection, fingerprint: str | None, known_hosts: Path | None) -> int:
    """Show the key that a host offers and record it once you have compared it.

    Compare the fingerprint with what the host itself prints at its console:
    ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub
    """
    from gapline.orchestrator.cli.trusting import trust_hosts

    return trust_hosts(selection, fingerprint=fingerprint, known_hosts=known_hosts)
