"""Every test that takes a `way` runs in every shell and as every user that this machine has."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shell.busybox_root import build
from tests.shell.shells import BUSYBOX_ROOT, WAYS, Way


@pytest.fixture(scope="session")
def busybox_root() -> Iterator[Path]:
    """A root file system with busybox only."""
    yield build(BUSYBOX_ROOT)
    shutil.rmtree(BUSYBOX_ROOT)


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    """A shell and a user."""
    chosen: Way = request.param
    if chosen.reason:
        pytest.skip(chosen.reason)
    if chosen.user == "chroot":
        request.getfixturevalue("busybox_root")
    return chosen


@pytest.fixture(params=[way for way in WAYS if way.user == "me"], ids=str)
def shell(request: pytest.FixtureRequest) -> Way:
    """A shell, as ourselves: for what takes seconds."""
    chosen: Way = request.param
    if chosen.reason:
        pytest.skip(chosen.reason)
    return chosen


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that every user of this machine may read."""
    for parent in (tmp_path, *tmp_path.parents[:3]):
        if parent.owner() != "root" or parent.stat().st_mode & 0o005 != 0o005:
            parent.chmod(parent.stat().st_mode | 0o005)
    return tmp_path
