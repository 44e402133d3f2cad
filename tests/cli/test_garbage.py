"""Garbage is looked for among hosts and left alone before."""

from __future__ import annotations

import gc

import pytest

from gapline.orchestrator.audit.progress import Event, HostFinished, HostStarted
from gapline.orchestrator.cli import garbage


def test_looks_once_for_so_many_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event is passed on; only finished hosts count."""
    looks: list[int] = []
    seen: list[Event] = []
    monkeypatch.setattr(gc, "collect", lambda: looks.append(len(seen)))
    monkeypatch.setattr(garbage, "_HOSTS", 3)
    with garbage.looked_for_among_hosts(seen.append) as observe:
        assert not gc.isenabled()
        for number in range(7):
            observe(HostStarted(str(number)))
            observe(HostFinished(str(number), None))
    assert looks == [6, 12]
    assert len(seen) == 14


def test_afterwards_all_is_as_before() -> None:
    """Also when the audit is interrupted."""
    with pytest.raises(KeyboardInterrupt), garbage.looked_for_among_hosts(lambda _: None):
        raise KeyboardInterrupt
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
