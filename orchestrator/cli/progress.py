"""An audit on standard error while it runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gapline.orchestrator.audit.progress import AgentJudged, Event, HostFinished, HostStarted, Observe, TargetPlanned
from gapline.orchestrator.cli.colours import SEVERITY
from gapline.orchestrator.model.finding import Finding, Severity
from gapline.orchestrator.model.outcome import Found, Passed, Unknown
from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.plan import Plan
from gapline.reports.visible import clipped, visible

_ROWS = 16  # of targets under way; a fleet's other targets are counted


@dataclass(slots=True)
class _Row:
    target: str
    yielding: Mapping[str, str]  # codes that yield, and the agent that they yield to
    agents: int = 0
    judged: int = 0
    unknown: int = 0
    answered: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    finished: bool = False
    problem: Problem | None = None

    def take(self, event: AgentJudged) -> None:
        self.judged += 1
        if isinstance(event.outcome, Found):
            self.findings += event.outcome.findings
        if isinstance(event.outcome, Found | Passed):
            self.answered.add(event.agent)
        self.unknown += isinstance(event.outcome, Unknown)

    @property
    def said(self) -> Text:
        if self.problem is not None and self.judged == self.unknown:
            return Text(clipped(visible(self.problem.detail), 100), "red")
        found = Counter(one.severity for one in self.findings if self.yielding.get(one.code) not in self.answered)
        counts = [(severity, found[severity]) for severity in Severity if found[severity]]
        parts = [Text(f"{number} {severity.value}", SEVERITY[severity]) for severity, number in counts]
        if self.unknown:
            parts.append(Text(f"{self.unknown} unknown", "magenta"))
        return Text(", ").join(parts) if parts else Text("nothing found" if self.finished else "", "dim")


class _Rows(dict[str, _Row]):
    """A row for each target, made when it is first heard of."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._yielding = {code.code: code.yields_to for agent in plan.agents for code in agent.codes if code.yields_to}

    def __missing__(self, target: str) -> _Row:
        row = self[target] = _Row(target, self._yielding)
        return row


@contextmanager
def watching(plan: Plan, stream: TextIO) -> Iterator[Observe]:
    """Show what the observer is told until the block ends."""
    console = Console(file=stream, highlight=False)
    rows = _Rows(plan)
    if not console.is_terminal:
        yield lambda event: _line(rows, event, console)
        return
    with Live(console=console, refresh_per_second=8, transient=True) as live:

        def observe(event: Event) -> None:
            _take(rows, event)
            live.update(_table(rows, len(plan.hosts)))

        yield observe


def _take(rows: _Rows, event: Event) -> None:
    match event:
        case HostStarted(host=host):
            rows[host].finished = False
        case TargetPlanned(target=target, agents=agents):
            rows[target].agents = agents
        case AgentJudged(target=target):
            rows[target].take(event)
        case HostFinished(host=host, problem=problem):
            for target, row in rows.items():
                if target == host or target.startswith(f"{host}/"):
                    row.finished, row.problem = True, problem


def _line(rows: _Rows, event: Event, console: Console) -> None:
    """A line for each target of a host that is done."""
    _take(rows, event)
    if isinstance(event, HostFinished):
        for target in [name for name in rows if name == event.host or name.startswith(f"{event.host}/")]:
            row = rows.pop(target)
            said = Text.assemble(visible(target), f": {row.judged} agents: ", row.said)
            console.print(said, soft_wrap=True)


def _table(rows: _Rows, hosts: int) -> Group:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("target", "agents", "found"):
        table.add_column(title, header_style="dim")
    under_way = [row for row in rows.values() if not row.finished]
    shown = (under_way + [row for row in rows.values() if row.finished][::-1])[:_ROWS]
    for row in sorted(shown, key=lambda row: row.target):
        done = Text(f"{row.judged}/{row.agents}", "green" if row.finished else "yellow")
        table.add_row(Text(visible(row.target)), done, row.said)
    finished = sum(row.finished for row in rows.values() if "/" not in row.target)
    return Group(table, Text(f"{finished} of {hosts} hosts done", "dim"))
