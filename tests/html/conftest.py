"""Reports on disk and a browser to open them with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from gapline.reports import html
from tests.html.browser import CHROMIUM, launch
from tests.html.fleet import fleet
from tests.html.hostile import PAYLOADS, poisoned
from tests.html.pve_b import pve_b
from tests.html.runs import config_around


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for the browser tests, closed with them: while it is open no other event loop can run here."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        chromium = launch(playwright)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the worked example."""
    return _written(tmp_path_factory.mktemp("example"), html.render(pve_b(), config_around))


@pytest.fixture(scope="session")
def fleet_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 99 targets."""
    return _written(tmp_path_factory.mktemp("fleet"), html.render(fleet(33)))


@pytest.fixture(scope="session")
def small_fleet_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 15 targets: laid out as a fleet, and quickly looked through."""
    return _written(tmp_path_factory.mktemp("small-fleet"), html.render(fleet(5)))


@pytest.fixture(scope="session", params=PAYLOADS)
def hostile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run in which every string is hostile, one for each kind of hostility."""
    run = poisoned(pve_b(), PAYLOADS[request.param])
    return _written(tmp_path_factory.mktemp("hostile"), html.render(run))


def _written(folder: Path, text: str) -> Path:
    file = folder / "report.html"
    file.write_text(text, encoding="utf-8")
    return file
