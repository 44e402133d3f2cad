"""Recording host keys: shown, compared by a person or against a given fingerprint, never replaced."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import click

from gapline.orchestrator.cli.routes import dialer
from gapline.orchestrator.cli.selection import Selection, hosts_of
from gapline.orchestrator.inventory.host import Host, Reach
from gapline.orchestrator.model.errors import HostKeyChanged, PlanError
from gapline.orchestrator.transport.ssh.host_keys import OfferedKey, trust


def trust_hosts(selection: Selection, *, fingerprint: str | None, known_hosts: Path | None) -> int:
    """Trust the hosts one after the other; 0 when all keys are recorded.

    Raises:
        PlanError: a fingerprint was given for several hosts, or nobody is there to compare.
        TransportError: a host was not reached, or another key is recorded for it.
    """
    hosts = [host for host in hosts_of(selection.targets, selection.fleet) if host.reach is Reach.SSH]
    if not hosts:
        raise PlanError("there is no SSH host to trust", hint="Name one: gapline trust user@host")
    if fingerprint is not None and len(hosts) != 1:
        raise PlanError("one fingerprint fits one host", hint="Trust the hosts one by one.")
    return max([_trust(host, fingerprint, known_hosts) for host in hosts])


def _trust(host: Host, fingerprint: str | None, known_hosts: Path | None) -> int:
    offered, files = anyio.run(_offered, host)
    path = known_hosts or host.known_hosts or Path(files[0])
    click.echo(f"{host.name}: {offered.algorithm} {offered.fingerprint}")
    if fingerprint is not None and fingerprint != offered.fingerprint:
        message = f"offers {offered.fingerprint}, not {fingerprint}"
        raise HostKeyChanged(host.name, message, hint="Find out why before you connect: somebody may be in between.")
    if fingerprint is None and not _confirmed(host, path):
        click.echo("Not recorded.", err=True)
        return 1
    recorded = trust(path, offered)
    click.echo(f"{'recorded in' if recorded else 'already in'} {path}")
    return 0


async def _offered(host: Host) -> tuple[OfferedKey, tuple[str, ...]]:
    async with dialer() as asking:
        return await asking.offered_key(host), asking.known_hosts(host)[1]


def _confirmed(host: Host, path: Path) -> bool:
    if not sys.stdin.isatty():
        hint = f"Pass what you compared: gapline trust {host.name} --fingerprint SHA256:…"
        raise PlanError("nobody is at the terminal to compare the fingerprint", hint=hint)
    return click.confirm(f"Is this what the host shows at its console? Record it in {path}?", err=True)
