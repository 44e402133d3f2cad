"""A finished run on the terminal: the answer first, the rest in the report."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from gapline.orchestrator.cli.colours import SEVERITY, VERDICT
from gapline.orchestrator.merger import in_order
from gapline.orchestrator.model.agent import Layer
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import OutcomeEntry, ReportedFinding, Run
from gapline.orchestrator.odd_one_out import AGENT as ODD_ONE_OUT
from gapline.orchestrator.run_folder import RunFolder
from gapline.reports.visible import clipped, visible

_RAW = 160  # characters of a raw line
_MOST = 8  # findings and unknowns that are listed; the report has all


def tell_answer(run: Run, folder: RunFolder) -> None:
    """Print the answer to standard output."""
    console = Console(highlight=False)
    for line in answer(run):
        console.print(line, soft_wrap=True)
    console.print(Text.assemble(("report  ", "dim"), str(folder.report)), soft_wrap=True)
    console.print(Text.assemble(("run     ", "dim"), str(folder.run_json)), soft_wrap=True)


def answer(run: Run) -> Iterator[Text]:
    """The lines of the answer."""
    if run.run.synthetic:
        yield Text("worked example, synthetic data", "bold yellow")
    located = {finding.fingerprint: (entry, finding) for entry in run.outcomes for finding in entry.findings}
    ordered = in_order(finding for _, finding in located.values() if not finding.waived)
    odd = [finding for finding in ordered[_MOST:] if located[finding.fingerprint][0].agent == ODD_ONE_OUT.id][:_MOST]
    for finding in ordered[:_MOST]:
        yield from _finding(*located[finding.fingerprint])
    if not ordered:
        yield Text("no findings", "green" if run.summary.exit_code == 0 else "yellow")
    if len(ordered) > _MOST + len(odd):
        yield Text(f"… and {len(ordered) - _MOST - len(odd)} more in the report", "dim")
    if odd:
        yield Text("\nodd one out", "bold")
        for finding in odd:
            yield from _finding(*located[finding.fingerprint])
    yield Text()
    yield from _layers(run)
    yield from _unseen(run)
    yield Text()


def _finding(entry: OutcomeEntry, finding: ReportedFinding) -> Iterator[Text]:
    lowered = finding.base_severity is not None and finding.base_severity is not finding.severity
    yield Text.assemble(
        (f"{finding.severity.value:<9}", SEVERITY[finding.severity]),
        (visible(entry.target), "bold"),
        "  ",
        visible(finding.title),
        (f"  [{finding.code}]", "dim"),
    )
    if finding.severity.rank > SEVERE:
        return
    if lowered:
        yield _indented("lowered", finding.severity_reason)
    yield _indented("observed", finding.observed)
    yield _indented("expected", finding.expected)
    for raw in finding.evidence[:2]:
        yield _indented("read", _cited(raw))
    yield _indented("now", finding.remedy.now)
    yield _indented("lasting", finding.remedy.lasting)
    yield _indented("then", f"gapline rerun {finding.remedy.verify_agent} --target {entry.target}")


SEVERE = 1
"""Findings up to this rank are told with what was read and what to do; the others in one line."""


def _cited(raw: Evidence) -> str:
    line = f":{raw.line}" if raw.line is not None else ""
    return f"{raw.target} {raw.source}{line}: {clipped(raw.text.strip(), _RAW)}"


def _indented(name: str, text: str) -> Text:
    first, *rest = visible(text).splitlines() or [""]
    lines = [first, *(f"{'':20}{line}" for line in rest)]
    return Text.assemble((f"{'':9} {name:<9} ", "dim"), "\n".join(lines))


def _layers(run: Run) -> Iterator[Text]:
    for entry in run.layers:
        name = Layer(entry.layer).name.lower()
        verdict = entry.verdict.value.replace("_", " ")
        yield Text.assemble(
            f"{entry.layer} {name:<14}", (f"{verdict:<11}", VERDICT[entry.verdict]), (visible(entry.reason), "dim")
        )


def _unseen(run: Run) -> Iterator[Text]:
    """What could not be seen, and what would make it visible; one line for what has one reason on a target."""
    reasons: dict[tuple[str, ProblemKind], tuple[Problem, list[str]]] = {
        (target.id, target.problem.kind): (target.problem, []) for target in run.targets if target.problem is not None
    }
    for entry in run.outcomes:
        if entry.status is Status.UNKNOWN and entry.problem is not None:
            key = (entry.target, entry.problem.kind)
            reasons.setdefault(key, (entry.problem, []))[1].append(entry.agent)
    if reasons:
        yield Text()
        yield Text("could not be seen", "bold magenta")
    for (target, _), (problem, agents) in list(reasons.items())[:_MOST]:
        asked = f"  ({', '.join(agents)})" if agents else ""
        yield Text.assemble("  ", (visible(target), "bold"), f": {visible(problem.detail)}", (asked, "dim"))
        if problem.hint:
            yield Text(f"    {visible(problem.hint)}", "dim")
    if len(reasons) > _MOST:
        yield Text(f"  … and {len(reasons) - _MOST} more in the report", "dim")
