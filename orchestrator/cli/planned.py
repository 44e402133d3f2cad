"""A plan for people and programs: every read, where, with which privilege, for whom."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import click
from rich.console import Console
from rich.text import Text

from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.sudoers import sudoers
from gapline.orchestrator.discovery.containers import CONTAINERS
from gapline.orchestrator.inventory.host import Become, Containers, Host
from gapline.orchestrator.model.agent import Agent, Scope
from gapline.orchestrator.model.errors import PlanError
from gapline.orchestrator.model.source import Command, Script, Source, Vantage
from gapline.orchestrator.plan import PRESENT, SURVEY, Plan, all_sources

_SURVEY = "survey"


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """One read. `where` is host or container (seen from its host) or inside (sent into it with lxc-attach)."""

    where: str
    source: Source
    agents: tuple[str, ...]

    @property
    def privilege(self) -> str:
        """What it takes to get an honest answer."""
        inside = self.where == "inside"
        if inside:
            return "root (lxc-attach)"
        return "root" if self.source.root or self.source is CONTAINERS else "any"


def reads(plan: Plan) -> Iterator[PlannedRead]:
    """Every read of the plan, in the order of their lanes."""
    for scope in (Scope.HOST, Scope.CONTAINER):
        for source in all_sources(plan.agents, scope):
            inside = source.vantage is Vantage.INSIDE
            yield PlannedRead("inside" if inside else scope.value, source, _readers(plan, scope, source))


def _readers(plan: Plan, scope: Scope, source: Source) -> tuple[str, ...]:
    agents = tuple(
        agent.id
        for agent in plan.agents
        if isinstance(agent, Agent) and agent.scope is scope and source in agent.sources.values()
    )
    survey = scope is Scope.HOST and source in SURVEY.values()
    return (_SURVEY, *agents) if survey or source is PRESENT else agents


def tell_plan(plan: Plan) -> None:
    """Print it."""
    console = Console(highlight=False)
    for host in plan.hosts:
        console.print(Text.assemble((host.name, "bold"), f"  {_how(host)}"), soft_wrap=True)
    console.print(Text("\none connection per host; at most two sh -s at a time, ended by closing their input", "dim"))
    for read in reads(plan):
        last = (
            " (last, only where the driver is up)" if isinstance(read.source, Command) and read.source.wakes_gpu else ""
        )
        line = Text.assemble((f"{read.where:<10}{read.privilege:<18}", "cyan"), read.source.key, (last, "yellow"))
        line.append(f"  for {', '.join(read.agents)}", "dim")
        console.print(line, soft_wrap=True)
        if isinstance(read.source, Script):
            for text in read.source.text.splitlines():
                console.print(Text(f"{'':30}{text}", "dim"), soft_wrap=True)
    console.print(
        Text(
            "\nwritten on a target: nothing. Entering a container with lxc-attach puts the reading shell into that"
            " container's cgroup for its duration; the kernel keeps no trace of it.",
            "dim",
        ),
        soft_wrap=True,
    )


def tell_sudoers(plan: Plan, user: str) -> int:
    """Print the sudoers file for the root reads on hosts; what it cannot grant goes to standard error."""
    items = [Item("host", read.source) for read in reads(plan) if read.where == "host"]
    try:
        text = sudoers(items, user)
    except ValueError as error:
        raise PlanError(str(error), hint="Give the name of the user that Gapline logs in as.") from error
    click.echo(text or "# no read of this plan needs root", nl=not text)
    scripts = [read.source.key for read in reads(plan) if read.where == "host" and _not_grantable(read)]
    click.echo(f"not grantable as single reads, unknown with become: sudo_reads: {', '.join(scripts)}", err=True)
    click.echo("and everything about containers: listing and entering them takes become: sudo", err=True)
    return 0


def _not_grantable(read: PlannedRead) -> bool:
    return read.privilege == "root" and isinstance(read.source, Script)


def plan_as_json(plan: Plan) -> str:
    """The plan as JSON, schema `gapline/plan/1`."""
    document = {
        "schema": "gapline/plan/1",
        "playbook": plan.playbook,
        "hosts": [{"name": host.name, "address": host.address, "how": _how(host)} for host in plan.hosts],
        "agents": [agent.id for agent in plan.agents],
        "reads": [
            {
                "where": read.where,
                "privilege": read.privilege,
                "source": read.source.key,
                "script": read.source.text if isinstance(read.source, Script) else None,
                "agents": read.agents,
            }
            for read in reads(plan)
        ],
    }
    return json.dumps(document, indent=1)


def _how(host: Host) -> str:
    login = f"{host.user}@{host.address}" if host.user else host.address
    port = f":{host.port}" if host.port else ""
    become = {Become.NONE: "", Become.SUDO: ", sudo -n sh -s", Become.SUDO_READS: ", single reads by sudo -n"}[
        host.become
    ]
    if isinstance(host.containers, Containers):
        containers = {Containers.AUTO: "its GPU containers", Containers.NONE: "no container"}[host.containers]
    else:
        containers = "containers " + ", ".join(entry.name for entry in host.containers)
    return f"by {host.reach.value} {login}{port}{become}; {containers}"
