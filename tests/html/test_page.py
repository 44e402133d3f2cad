"""The page as text: what it forbids, how large it gets, what it never contains."""

from __future__ import annotations

import re

import pytest

from gapline.reports import html
from tests.html.fleet import endless_context, fleet, talkative
from tests.html.hostile import PAYLOADS, poisoned
from tests.html.pve_b import pve_b
from tests.html.runs import config_around

MEGABYTE = 1_000_000


def size(text: str) -> int:
    """Bytes on disk."""
    return len(text.encode())


def test_pure() -> None:
    """The same run gives the same bytes."""
    assert html.render(pve_b(), config_around) == html.render(pve_b(), config_around)


def test_streamed_in_pieces() -> None:
    """A fleet's page is written in many small pieces."""
    pieces = list(html.stream(fleet(5)))
    assert len(pieces) > 20
    assert "".join(pieces) == html.render(fleet(5))


def test_forbids_everything() -> None:
    """The content security policy comes first and allows styles in the page and nothing else."""
    text = html.render(pve_b())
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert text.index("Content-Security-Policy") < text.index("<style")


def test_asks_for_nothing() -> None:
    """No element that loads or runs anything, and no address outside of the page."""
    text = html.render(pve_b(), config_around)
    assert not re.search(r"<(script|link|img|iframe|object|embed|form|base|audio|video|source)\b", text)
    assert not re.search(r"(src|srcset|action|xlink:href)=", text)
    assert "url(" not in text
    assert "@import" not in text
    assert all(href.startswith("#") for href in re.findall(r'href="([^"]*)"', text))


@pytest.mark.parametrize("name", PAYLOADS)
def test_hostile_text_is_escaped(name: str) -> None:
    """No payload opens an element, and the file can be encoded."""
    text = html.render(poisoned(pve_b(), PAYLOADS[name]))
    assert size(text) > 0
    assert not re.search(r"<(script|img|svg/|h1>owned)", text)
    assert text.count("</style>") == 1
    assert "\x00" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


class TestSize:
    """Bytes, not seconds."""

    def test_small_run(self) -> None:
        """The worked example is a small file."""
        assert size(html.render(pve_b(), config_around)) < 150_000

    def test_one_talkative_target(self) -> None:
        """One machine that fills every field stays within its allowance and the page's own words."""
        assert size(html.render(talkative(1, 200), endless_context)) < 400_000

    def test_fleet(self) -> None:
        """A hundred ordinary targets."""
        assert size(html.render(fleet(33))) < 3 * MEGABYTE

    def test_talkative_fleet(self) -> None:
        """A hundred targets that never stop: still one page of at most 10 MB, and what is missing is counted."""
        text = html.render(talkative(100, 80), endless_context)
        assert size(text) < 10 * MEGABYTE
        assert "more findings that this page does not list" in text
        assert text.count('<tr class="critical') + text.count('<tr class="medium') == 100
