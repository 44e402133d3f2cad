"""A report in a real browser, watched: what it asks for, what it complains about, what it opens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass
class Watched:
    """An open page, and everything it did that a report must not do."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def assert_quiet(self) -> None:
        """It asked for nothing but itself and nothing went wrong in it."""
        assert self.requests == []
        assert self.complaints == []


def launch(playwright: Playwright) -> Browser:
    """Debian's Chromium."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))


@contextmanager
def opened(browser: Browser, file: Path, **options: Any) -> Iterator[Watched]:
    """The file in a page of its own; every other request is stopped and remembered."""
    context = browser.new_context(**options)
    page = context.new_page()
    watched = Watched(page)

    def dialog(one: Any) -> None:
        watched.complaints.append(f"dialog: {one.message}")
        one.dismiss()

    def route(one: Any) -> None:
        if one.request.url.split("#")[0] == file.as_uri():
            one.continue_()
        else:
            watched.requests.append(one.request.url)
            one.abort()

    page.on("dialog", dialog)
    page.on("console", lambda message: watched.complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: watched.complaints.append(f"error: {error}"))
    page.on("popup", lambda popup: watched.complaints.append(f"popup: {popup.url}"))
    context.route("**/*", route)
    page.goto(file.as_uri())
    yield watched
    context.close()
