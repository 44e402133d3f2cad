"""What all levels share: asyncio as the event loop, and a summary per level.

A level is a folder of tests/. In CI, as root, everything can be installed, so a test of a real shell, server,
container, virtual machine or browser that is skipped there hides a fault of the set-up, and fails.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

LEVELS = Path(__file__).parent
NEVER_SKIPPED_IN_CI = {"cli", "html", "lab", "shell", "ssh"}
OUTCOMES = ("passed", "failed", "error", "xfailed", "xpassed", "skipped")

# A deadline would assert time: the machine may be busy with something else.
settings.register_profile("gapline", deadline=None)
settings.load_profile("gapline")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, the only loop that asyncssh knows."""
    return "asyncio"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that was skipped where it must run."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and must_run(item.path):
        report.outcome, report.longrepr = "failed", f"skipped, but must run in CI: {reason(report)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail a whole file that skipped itself where it must run."""
    report = yield
    if report.skipped and must_run(collector.path):
        report.outcome, report.longrepr = "failed", f"skipped, but must run in CI: {reason(report)}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Counts and seconds per level, and why a level skipped what it skipped."""
    counts: dict[str, Counter[str]] = {}
    reasons: dict[str, Counter[str]] = {}
    seconds: defaultdict[str, float] = defaultdict(float)
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if not isinstance(report, pytest.TestReport | pytest.CollectReport):
                continue  # warnings, deselected items
            level = level_of(LEVELS.parent / report.nodeid.partition("::")[0])
            seconds[level] += getattr(report, "duration", 0.0)
            if outcome:  # set-up and tear-down that passed have none
                counts.setdefault(level, Counter())[outcome] += 1
            if outcome == "skipped":
                reasons.setdefault(level, Counter())[reason(report)] += 1
    terminalreporter.write_sep("=", "levels")
    for level, count in sorted(counts.items()):
        shown = ", ".join(f"{count[outcome]} {outcome}" for outcome in OUTCOMES if count[outcome])
        terminalreporter.write_line(f"{level:<8} {seconds[level]:7.1f} s  {shown}")
        for why, times in reasons.get(level, Counter()).most_common():
            terminalreporter.write_line(f"{'':<8} skipped {times}: {why}")


def level_of(path: Path) -> str:
    """The folder of tests/ that a path lies in."""
    return path.relative_to(LEVELS).parts[0] if path.is_relative_to(LEVELS) else "?"


def must_run(path: Path) -> bool:
    """Whether a skip of this test is a failure here."""
    return os.environ.get("CI") == "true" and os.geteuid() == 0 and level_of(path) in NEVER_SKIPPED_IN_CI


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why it was skipped, in one line."""
    where = report.longrepr
    return str(where[2] if isinstance(where, tuple) else where).removeprefix("Skipped: ").partition("\n")[0]
