"""Reports and the terminal have a word, or a colour, for everything the model can say."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import ModuleType

import pytest

from gapline.orchestrator.cli import colours, rerunning
from gapline.reports.view import words


@pytest.mark.parametrize("module", [words, colours, rerunning], ids=lambda module: module.__name__)
def test_no_member_of_an_enum_is_forgotten(module: ModuleType) -> None:
    """A table by an enum has all of its members: a missing one would end a report with a traceback."""
    checked = 0
    for name, table in vars(module).items():
        if isinstance(table, Mapping) and table and isinstance(first := next(iter(table)), Enum):
            assert set(table) == set(type(first)), name
            checked += 1
    assert checked
