"""Some agents again, on the targets of an earlier run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from gapline.orchestrator.cli import request
from gapline.orchestrator.cli.auditing import collect, remember_or_warn, write
from gapline.orchestrator.cli.registry import agents_for
from gapline.orchestrator.cli.reporting import folder_of
from gapline.orchestrator.cli.routes import Ways, routes
from gapline.orchestrator.cli.selection import Selection, hosts_of, plan_with
from gapline.orchestrator.inventory.host import ContainerEntry, Host
from gapline.orchestrator.model.agent import AnyAgent, Scope
from gapline.orchestrator.model.errors import PlanError
from gapline.orchestrator.model.run import OutcomeEntry, Run
from gapline.orchestrator.plan import Plan, with_needed, with_pairs
from gapline.orchestrator.playbook.check import check
from gapline.orchestrator.playbook.load import load
from gapline.orchestrator.playbook.playbook import Playbook
from gapline.orchestrator.playbook.select import select_agents
from gapline.orchestrator.remerge import Changes, State, changes, remerge, with_unanswered
from gapline.orchestrator.run_folder import RunFolder
from gapline.orchestrator.yaml_document.faults import did_you_mean
from gapline.reports.visible import visible

_STYLE = {State.FIXED: "green", State.STILL: "yellow", State.NEW: "red", State.UNKNOWN: "magenta"}


def rerun(agents: Sequence[str], targets: Sequence[str], path: Path | None, *, as_json: bool) -> int:
    """Run them, merge, write, and print what changed; the exit code is that of the fresh part.

    Raises:
        SnapshotError: there is no run to merge into, or nobody knows how to reach its targets.
        PlanError: an agent or a target is not one of the run's.
    """
    folder = folder_of(path)
    old = folder.read()
    selection = request.recall(folder)
    hosts = hosts_of(selection.targets, selection.fleet)
    changed, new = rerun_into(folder, old, rerun_plan(old, selection, hosts, agents, targets))
    remember_or_warn(folder)
    if as_json:
        click.echo(changed.model_dump_json(indent=1))
    else:
        tell_changes(changed, new)
    return new.summary.exit_code


def rerun_into(folder: RunFolder, old: Run, plan: Plan, ways: Ways = routes) -> tuple[Changes, Run]:
    """Run the plan and merge it into the folder's run; what changed, and the fresh part alone."""
    fresh = collect(plan, folder, synthetic=old.run.synthetic, ways=ways)
    new = with_unanswered(old, fresh, lambda entry: _is_asked(plan, entry))
    merged = remerge(old, new)
    write(merged, folder)
    return changes(old, new, merged), new


def rerun_plan(
    old: Run, selection: Selection, hosts: Sequence[Host], agents: Sequence[str], targets: Sequence[str]
) -> Plan:
    """The plan for these agents and the pair agents on them, on these targets of the run.

    Raises:
        PlanError: an agent or a target does not exist.
    """
    everyone, playbook = agents_for(agents), load(selection.playbook)
    check(_about(playbook, everyone), everyone)
    chosen = with_pairs(select_agents(playbook, everyone, tuple(agents)), everyone)
    wanted = _restricted(old, hosts, targets)
    if not any(host.host_too for host in wanted) and all(agent.scope is Scope.HOST for agent in chosen):
        hint = "Name the host, or an agent that looks at containers: see `gapline agents`."
        raise PlanError(f"{', '.join(agents)} looks at hosts, not at {', '.join(targets) or 'containers'}", hint=hint)
    return plan_with(with_needed(chosen, everyone), playbook, selection, wanted)


def _about(playbook: Playbook, agents: Sequence[AnyAgent]) -> Playbook:
    """What it says about these; what it says about others does not matter here."""
    ids = {agent.id for agent in agents}
    return replace(playbook, entries={id_: entry for id_, entry in playbook.entries.items() if id_ in ids})


def _is_asked(plan: Plan, entry: OutcomeEntry) -> bool:
    """Whether the plan would have asked for this answer, had its target been there."""
    name, _, container = entry.target.partition("/")
    host = next((host for host in plan.hosts if host.name == name), None)
    if host is None or entry.agent not in {agent.id for agent in plan.agents}:
        return False
    listed = {one.name for one in host.containers} if isinstance(host.containers, tuple) else None
    return host.host_too if not container else listed is None or container in listed


def _restricted(old: Run, hosts: Sequence[Host], targets: Sequence[str]) -> tuple[Host, ...]:
    if not targets:
        return tuple(hosts)
    known = {target.id for target in old.targets}
    for target in targets:
        if target not in known:
            hint = did_you_mean(target, known) or "See the targets in the report."
            raise PlanError(f"the run has no target {target}", hint=hint)
    return tuple(only for host in hosts if (only := _only(host, targets)) is not None)


def _only(host: Host, targets: Sequence[str]) -> Host | None:
    """The host with what is asked for on it, or None."""
    if host.name in targets:
        return host
    names = tuple(target.partition("/")[2] for target in targets if target.partition("/")[0] == host.name)
    if not names:
        return None
    listed = host.containers if isinstance(host.containers, tuple) else ()
    entries = {entry.name: entry for entry in (*listed, *host.declared)}
    wanted = tuple(entries.get(name, ContainerEntry(name=name)) for name in names)
    return replace(host, containers=wanted, declared=(), host_too=False)


def tell_changes(changed: Changes, new: Run) -> None:
    """Print each finding before and now, and what could not be seen."""
    console = Console(highlight=False)
    for change in changed.changes:
        before = change.before.value if change.before else "-"
        after = change.after.value if change.after else "-"
        arrow = f"{before} → {after if change.state is not State.UNKNOWN else '?'}"
        line = Text.assemble(
            (f"{change.state.value:<8}", _STYLE[change.state]),
            (f"{arrow:<20}", "dim"),
            (visible(change.target), "bold"),
            f"  {visible(change.code)}",
        )
        console.print(line, soft_wrap=True)
    unseen = [entry for entry in new.outcomes if entry.problem is not None]
    for entry in unseen:
        console.print(
            Text(f"unknown {visible(entry.target)} {entry.agent}: {visible(entry.reason)}", "magenta"), soft_wrap=True
        )
    if not changed.changes and not unseen:
        console.print(Text(f"no findings, before or now ({len(new.outcomes)} answers)", "green"))
