"""The runbook as Markdown: for a ticket, or to read beside the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.reports.runbook.plan import HostPlan, Runbook, verification
from gapline.reports.runbook.reboot import check, keep_kernel, way_back
from gapline.reports.runbook.step import Part, Step
from gapline.reports.visible import clipped, visible

HEADINGS = {
    Part.LIVE: "Now, while everything runs",
    Part.RESTART: "Before one restart of each container",
    Part.REBOOT: "Before the one reboot of the host",
    Part.TRADE: "Decide apart: these give up security",
}
_WIDTH = 1500
_SUBJECTS = 8


def markdown(book: Runbook) -> Iterator[str]:
    """The document in pieces."""
    run = book.run.run
    yield f"# Runbook for the run {run.id}\n\n"
    if run.synthetic:
        yield "**Worked example, synthetic data.**\n\n"
    yield (
        f"Made from what was read on {run.started:%Y-%m-%d %H:%M} UTC. Nothing has been carried out. Do the parts in "
        "their order, and after each look again with the command at its end.\n"
    )
    if not book.hosts:
        yield "\nThere is nothing to do: no finding asks for a repair.\n"
    for plan in book.hosts:
        yield from _host(plan)
    if book.left_out:
        yield f"\n{book.left_out} findings of severity *info* are left out: they ask for nothing.\n"


def _host(plan: HostPlan) -> Iterator[str]:
    yield f"\n## {_text(plan.host.id)}\n"
    for part in Part:
        steps = plan.of(part)
        if not steps:
            continue
        yield f"\n### {HEADINGS[part]}\n"
        for number, step in enumerate(steps, start=1):
            yield from _step(number, step)
        yield from _after(plan, part, steps)


def _step(number: int, step: Step) -> Iterator[str]:
    first, remedy = step.findings[0], step.remedy
    where = "" if "/" not in step.target else f" ({_text(step.target)})"
    yield f"\n{number}. **{_text(first.title)}**{where}: {step.severity}, `{first.code}`\n"
    yield f"   - Found: {_text(first.observed)}\n"
    if len(step.findings) > 1:
        yield f"   - On: {_subjects(step)}\n"
    if remedy.commands:
        yield "   - Now:\n\n" + _block(remedy.commands, "     ") + "\n"
    else:
        yield f"   - Now: {_text(remedy.now)}\n"
    yield f"   - To last: {_text(remedy.lasting)}\n"
    if remedy.diff:
        yield "\n" + _block(remedy.diff.splitlines(), "     ") + "\n"
    yield f"   - Back: {_text(remedy.undo)}\n"
    yield f"   - Costs: {_text(remedy.cost)}\n"
    yield f"   - Restarts: {_text(remedy.restarts)}\n"


def _after(plan: HostPlan, part: Part, steps: Sequence[Step]) -> Iterator[str]:
    if part is Part.RESTART:
        for target in plan.restarted:
            name = target.partition("/")[2]
            restart = f"pct reboot {name}" if plan.proxmox else f"lxc-stop -n {name} && lxc-start -n {name}"
            yield f"\nThen restart {_text(target)} once, on the host:\n\n{_block((restart,))}"
    if part is Part.REBOOT:
        yield f"\nThen keep the kernel that runs now:\n\n{_block(keep_kernel(plan))}"
        yield "\nSee that the GPUs will be there after the reboot; do not reboot before this is clean:\n\n"
        yield _block(check(plan))
        yield f"\nReboot once. {way_back(plan)}\n\n{_block(('systemctl reboot',))}"
    commands = [f"gapline rerun {' '.join(agents)} --target {target}" for target, agents in verification(tuple(steps))]
    yield f"\nLook again, from the machine that has Gapline:\n\n{_block(commands)}"


def _subjects(step: Step) -> str:
    names = [_text(finding.subject) for finding in step.findings]
    more = f" and {len(names) - _SUBJECTS} more" if len(names) > _SUBJECTS else ""
    return ", ".join(names[:_SUBJECTS]) + more


def _block(lines: Sequence[str], indent: str = "") -> str:
    """Indented code: nothing in it can end it."""
    return "".join(f"{indent}    {visible(line)}\n" for text in lines for line in text.split("\n"))


def _text(text: str) -> str:
    """One line; what stands between backticks stays code, and no target can write markup."""
    flat = " ".join(visible(clipped(text, _WIDTH)).split())
    return "`".join(piece if place % 2 else _escaped(piece) for place, piece in enumerate(_paired(flat).split("`")))


def _paired(text: str) -> str:
    return text if text.count("`") % 2 == 0 else text.replace("`", "'")


def _escaped(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\*_[]<>#|" else sign for sign in text)
