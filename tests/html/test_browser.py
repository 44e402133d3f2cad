"""The report in a real browser: quiet, readable, accessible and printable, whatever the targets said."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from gapline.reports import html
from tests.html.browser import opened
from tests.html.fleet import fleet
from tests.html.hostile import MARKUP, poisoned
from tests.html.pve_b import CT, pve_b
from tests.html.runs import CONFIG_LINES

pytestmark = pytest.mark.browser

PHONE = {"width": 400, "height": 800}
DESK = {"width": 1600, "height": 1000}
BANNER = "worked example, synthetic data"
OURS = {  # every element that our templates write
    *[
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "aside",
        "b",
        "header",
        "p",
        "svg",
        "path",
        "span",
        "div",
        "nav",
        "ul",
        "li",
        "main",
        "section",
        "h1",
        "h2",
        "h3",
        "h4",
        "code",
    ],
    *[
        "ol",
        "dl",
        "dt",
        "dd",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "br",
        "details",
        "summary",
        "figure",
        "figcaption",
        "pre",
        "article",
        "caption",
        "rect",
    ],
    *["polygon", "desc", "footer"],
}


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def assert_accessible(page: Page) -> None:
    """Axe's rules: contrast, names, headings, landmarks, tables, keyboard reach."""
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


def open_everything(page: Page) -> None:
    """As a reader would who wants to see it all."""
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["400px", "1600px"])
def test_every_size(browser: Browser, example: Path, size: dict[str, int], scheme: str) -> None:
    """On a telephone and on a desk, by day and by night: quiet, no sideways scroll, and axe finds nothing."""
    with opened(browser, example, viewport=size, color_scheme=scheme, bypass_csp=True) as watched:
        open_everything(watched.page)
        watched.assert_quiet()
        assert overflow(watched.page) == 0
        assert_accessible(watched.page)


class TestContents:
    """What a reader sees, without any script."""

    def test_answer_first(self, browser: Browser, example: Path) -> None:
        """The first screen has the answer, and says what was not measured."""
        with opened(browser, example, viewport=DESK, java_script_enabled=False) as watched:
            page = watched.page
            assert page.locator("h1").inner_text() == f"Work is blocked on {CT}."
            assert "not known" in page.locator(".distance").inner_text()
            first = page.locator("ol.first > li").first
            assert "stops the work" in first.inner_text()
            assert page.locator("ol.layers > li").count() == 5
            watched.assert_quiet()

    def test_both_raw_lines(self, browser: Browser, example: Path) -> None:
        """The critical finding shows what the host says and what the container says."""
        with opened(browser, example, viewport=DESK, java_script_enabled=False) as watched:
            card = watched.page.locator("details.card.critical")
            for line in ("511 nvidia-uvm", CONFIG_LINES[7], "gapline rerun pair.device_chain --target pve-b/129"):
                assert card.get_by_text(line, exact=True).first.is_visible()
            both = watched.page.locator("article.both").first.inner_text()
            assert "511 nvidia-uvm" in both
            assert CONFIG_LINES[7] in both

    def test_folds_work_without_script(self, browser: Browser, example: Path) -> None:
        """A folded finding opens on a click and from the keyboard."""
        with opened(browser, example, viewport=DESK, java_script_enabled=False) as watched:
            card = watched.page.locator("details.card.medium").first
            inside = card.locator(".remedy")
            assert not inside.is_visible()
            card.locator("summary").click()
            assert inside.is_visible()
            card.locator("summary").press("Enter")
            assert not inside.is_visible()

    def test_links_lead_somewhere(self, browser: Browser, example: Path) -> None:
        """Every link is within the page, every anchor exists once, and a link opens the fold it leads into."""
        with opened(browser, example, viewport=DESK) as watched:
            page = watched.page
            hrefs = page.evaluate("[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))")
            ids = page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
            assert len(ids) == len(set(ids))
            assert {href.removeprefix("#") for href in hrefs} <= set(ids)

    def test_banner_stays(self, browser: Browser, example: Path) -> None:
        """The banner of a worked example is on the screen wherever one reads."""
        with opened(browser, example, viewport=PHONE) as watched:
            banner = watched.page.locator("aside.banner")
            watched.page.locator("#about").scroll_into_view_if_needed()
            box = banner.bounding_box()
            assert box is not None
            assert 0 <= box["y"] < 10

    def test_real_run_has_no_banner(self, browser: Browser, tmp_path: Path) -> None:
        """Nothing calls a real audit an example."""
        file = tmp_path / "real.html"
        file.write_text(html.render(pve_b(synthetic=False)), encoding="utf-8")
        with opened(browser, file) as watched:
            assert "synthetic" not in watched.page.content()


class TestPaper:
    """Printing."""

    def test_print_opens_what_matters(self, browser: Browser, example: Path) -> None:
        """On paper the evidence and the remedy of folded findings are visible."""
        with opened(browser, example, viewport=DESK) as watched:
            page = watched.page
            page.emulate_media(media="print")
            for text in (
                "511 nvidia-uvm",
                "schedutil on 128 of 128 policies, boost on",
                "cpupower frequency-set -g performance",
            ):
                assert page.locator("details.card").get_by_text(text, exact=True).first.is_visible(), text
            assert page.get_by_text(BANNER).first.is_visible()

    def test_pdf(self, browser: Browser, example: Path) -> None:
        """The PDF says on every page what it is, and holds the evidence."""
        pypdf = pytest.importorskip("pypdf")
        with opened(browser, example, viewport=DESK) as watched:
            pdf = example.with_suffix(".pdf")
            watched.page.pdf(path=pdf, format="A4", prefer_css_page_size=True, print_background=True)
        pages = [page.extract_text() for page in pypdf.PdfReader(pdf).pages]
        assert len(pages) > 1
        assert all(BANNER in text for text in pages)
        assert any("511 nvidia-uvm" in text for text in pages)
        assert any("schedutil on 128 of 128 policies, boost on" in text.replace("\n", " ") for text in pages)


class TestHostile:
    """Text from an enemy stays text."""

    def test_nothing_happens(self, browser: Browser, hostile: Path) -> None:
        """No dialog, no request, no popup, no complaint, no element and no attribute that is not ours."""
        with opened(browser, hostile, viewport=PHONE, bypass_csp=True) as watched:
            page = watched.page
            open_everything(page)
            page.mouse.move(100, 100)
            watched.assert_quiet()
            tags = page.evaluate("[...document.querySelectorAll('*')].map(one => one.localName)")
            assert set(tags) <= OURS
            names = page.evaluate("[...document.querySelectorAll('*')].flatMap(one => one.getAttributeNames())")
            assert not [name for name in names if name.startswith("on")]
            assert page.locator("h1").count() == 1
            assert overflow(page) == 0

    def test_same_shape(self, browser: Browser, hostile: Path, example: Path) -> None:
        """The page has the landmarks and headings of the harmless one, in the same order."""
        script = "[...document.querySelectorAll('main > section')].map(one => one.id)"
        with opened(browser, hostile) as bad, opened(browser, example) as good:
            assert bad.page.evaluate(script) == good.page.evaluate(script)

    def test_markup_is_shown(self, browser: Browser, tmp_path: Path) -> None:
        """What was said can be read, to the letter."""
        file = tmp_path / "hostile.html"
        file.write_text(html.render(poisoned(pve_b(), MARKUP)), encoding="utf-8")
        with opened(browser, file) as watched:
            assert f"511 nvidia-uvm{MARKUP}" in watched.page.locator("details.card.critical").inner_text()


class TestFleet:
    """A hundred targets on one page."""

    def test_overview_first(self, browser: Browser, fleet_report: Path) -> None:
        """Every target has a line; findings and targets are folded; shared findings stand once."""
        with opened(browser, fleet_report, viewport=DESK, java_script_enabled=False) as watched:
            page = watched.page
            assert page.locator("table.overview tbody tr").count() == len(fleet(33).targets)
            assert page.locator("details.target[open], details.card[open]").count() == 0
            shared = page.locator("table.shared tbody tr", has_text="cpu.governor_dynamic")
            assert "22" in shared.locator("td.num").inner_text()
            assert page.locator("details.card", has_text="The CPU governor is schedutil").count() == 1
            watched.assert_quiet()

    @pytest.mark.parametrize(("size", "scheme"), [(PHONE, "light"), (DESK, "dark")], ids=["400px-light", "1600px-dark"])
    def test_accessible(self, browser: Browser, small_fleet_report: Path, size: dict[str, int], scheme: str) -> None:
        """As it opens, axe finds nothing, and the page does not scroll sideways."""
        with opened(browser, small_fleet_report, viewport=size, color_scheme=scheme, bypass_csp=True) as watched:
            assert overflow(watched.page) == 0
            assert_accessible(watched.page)

    def test_link_opens_the_fold(self, browser: Browser, fleet_report: Path) -> None:
        """A link from the overview unfolds the finding it names."""
        with opened(browser, fleet_report, viewport=DESK) as watched:
            link = watched.page.locator("table.shared tbody a").first
            anchor = link.get_attribute("href")
            link.click()
            assert watched.page.locator(f"{anchor}").first.is_visible()
