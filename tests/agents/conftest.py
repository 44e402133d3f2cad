"""The shells in which scripts of agents are tried here."""

from __future__ import annotations

import shutil

import pytest

SHELLS = [pytest.param(("dash",), id="dash"), pytest.param(("bash",), id="bash")]
SHELLS += [pytest.param(("busybox", "ash"), id="busybox")]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """A shell, or a skip where it is not installed."""
    words: tuple[str, ...] = request.param
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    return words
