"""What is to be audited by whom: the arguments that several commands share, turned into a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gapline.orchestrator.inventory.host import Host
    from gapline.orchestrator.model.agent import AnyAgent
    from gapline.orchestrator.plan import Plan
    from gapline.orchestrator.playbook.playbook import Playbook

DEFAULT_FLEET = Path("fleet.yaml")
_FAIL_ON = ("critical", "high", "medium", "low", "info", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The shared arguments as they were given."""

    targets: tuple[str, ...]
    fleet: Path | None
    playbook: str = "full"
    agents: tuple[str, ...] = ()
    fail_on: str | None = None
    allow_init: bool = False


_TARGETS = (
    click.argument("targets", nargs=-1, metavar="[TARGET]..."),
    click.option(
        "-i",
        "--inventory",
        "fleet",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar="GAPLINE_FLEET",
        help="Fleet file. Default: fleet.yaml in this directory, if it is there.",
    ),
)
_AGENTS = (
    click.option(
        "--playbook", default="full", show_default=True, metavar="NAME|FILE", help="What runs, by which limits."
    ),
    click.option("--agent", "agents", multiple=True, metavar="ID", help="Only this agent, or host.*; repeatable."),
    click.option("--allow-init", is_flag=True, help="Also run commands that can load the driver or create its nodes."),
)
_FAIL = (
    click.option(
        "--fail-on",
        type=click.Choice(_FAIL_ON),
        help="From which severity on the exit code is 1. Default: the playbook's.",
    ),
)


def selects_targets(command: Callable[..., int]) -> Callable[..., int]:
    """Give the command a `selection` made from `[TARGET]…` and `-i`."""
    return _packed(command, _TARGETS)


def selects(command: Callable[..., int]) -> Callable[..., int]:
    """Give the command a `selection` made from targets, fleet, playbook and agents."""
    return _packed(command, _TARGETS + _AGENTS)


def selects_and_fails(command: Callable[..., int]) -> Callable[..., int]:
    """As `selects`, with `--fail-on`."""
    return _packed(command, _TARGETS + _AGENTS + _FAIL)


def _packed(
    command: Callable[..., int], options: Sequence[Callable[[Callable[..., int]], Callable[..., int]]]
) -> Callable[..., int]:
    """The command with the options, whose values arrive as one `Selection`."""
    names = {field.name for field in fields(Selection)}

    @wraps(command)
    def packing(**given: Any) -> int:
        chosen = {name: given.pop(name) for name in names & given.keys()}
        return command(selection=Selection(**chosen), **given)

    packed: Callable[..., int] = packing
    for option in reversed(options):
        packed = option(packed)
    return packed


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def hosts_of(targets: Sequence[str], fleet: Path | None) -> tuple[Host, ...]:
    """The hosts that the arguments name.

    Raises:
        ConfigError, PlanError: the fleet file or a target is wrong.
    """
    from gapline.orchestrator.inventory.fleet import load
    from gapline.orchestrator.inventory.select import select

    path = fleet or (DEFAULT_FLEET if DEFAULT_FLEET.is_file() else None)
    return select(load(path) if path is not None else None, targets)


def plan_of(selection: Selection, hosts: Sequence[Host] | None = None) -> Plan:
    """The plan for what was asked; `hosts` replace what the selection says about targets.

    Raises:
        ConfigError, PlanError: a file, a target, an agent or a limit is wrong.
    """
    from gapline.orchestrator.cli.registry import all_agents
    from gapline.orchestrator.plan import with_needed
    from gapline.orchestrator.playbook.check import check
    from gapline.orchestrator.playbook.load import load
    from gapline.orchestrator.playbook.select import select_agents

    everyone = all_agents()
    playbook = load(selection.playbook)
    check(playbook, everyone)
    chosen = select_agents(playbook, everyone, selection.agents)
    seen = hosts if hosts is not None else hosts_of(selection.targets, selection.fleet)
    return plan_with(with_needed(chosen, everyone), playbook, selection, seen)


def plan_with(agents: tuple[AnyAgent, ...], playbook: Playbook, selection: Selection, hosts: Sequence[Host]) -> Plan:
    """The plan for these agents on these hosts; only the flags of the selection count."""
    from gapline.orchestrator.model.finding import Severity
    from gapline.orchestrator.plan import Plan

    fail_on = playbook.fail_on
    if selection.fail_on is not None:
        fail_on = Severity(selection.fail_on) if selection.fail_on != "none" else None
    return Plan(
        playbook=playbook.name,
        fail_on=fail_on,
        hosts=tuple(hosts),
        agents=agents,
        limits={agent.id: playbook.limits(agent.id) for agent in agents},
        allow_init=selection.allow_init,
    )
