"""Templates are compiled once per machine, and never wrongly."""

from __future__ import annotations

from pathlib import Path

from gapline.reports import html
from tests.html.pve_b import pve_b


def test_kept_templates_give_the_same_page(tmp_path: Path) -> None:
    """With a fresh directory, with what it holds then, and with rubbish in it."""
    plain = html.render(pve_b())
    assert "".join(html.stream(pve_b(), compiled=str(tmp_path))) == plain
    kept = list(tmp_path.iterdir())
    assert kept
    for file in kept:
        file.write_bytes(b"rubbish")
    html._environment.cache_clear()
    assert "".join(html.stream(pve_b(), compiled=str(tmp_path))) == plain
