"""Diffs of files of which lines were withheld, against the real `patch`."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gapline.agents.container.config_diff import Edit, unified_diff
from gapline.agents.container.setting import WITHHELD

WORDS = st.sampled_from(["a", "b", "c 1", "c 2"])
LINES = st.lists(st.tuples(WORDS, st.integers(0, 3)), min_size=1, max_size=12)
EDITS = st.lists(st.tuples(st.integers(0, 11), st.booleans(), st.lists(WORDS, max_size=2)), min_size=1, max_size=4)


def expected(real: Sequence[str], edits: Sequence[Edit]) -> list[str]:
    """The file as the edits want it, made without a diff."""
    out: list[str] = []
    for number in range(1, len(real) + 2):
        here = [edit for edit in edits if edit.line == number]
        out += dict.fromkeys(line for edit in here for line in edit.add)
        if number <= len(real) and not any(edit.remove for edit in here):
            out.append(real[number - 1])
    return out


@given(LINES, EDITS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_patch_takes_it(lines: list[tuple[str, int]], raw: list[tuple[int, bool, list[str]]], ended: bool) -> None:
    """Applied to the real file, of which the diff's maker saw a part only, it gives what was meant."""
    real = [word for word, _ in lines]
    seen = [f"# {WITHHELD}" if hidden == 0 else word for word, hidden in lines]
    edits = [
        Edit(
            at % (len(real) + 1) + 1,
            remove and seen[at % (len(real) + 1) : at % (len(real) + 1) + 1] == [real_at],
            tuple(add),
        )
        for at, remove, add in raw
        for real_at in [([*real, ""])[at % (len(real) + 1)]]
    ]
    want = expected(real, edits)
    if want in ([], real):
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config"
        file.write_text("\n".join(real) + ("\n" if ended else ""))
        diff = unified_diff(str(file), seen, edits, ended=ended)
        done = subprocess.run(
            ["patch", "--batch", "--fuzz=0", str(file)], input=diff, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{diff}"
        assert file.read_text().removesuffix("\n").split("\n") == want
    assert WITHHELD not in diff


def test_nothing_to_do_is_no_diff() -> None:
    """No edits, no text."""
    assert unified_diff("/etc/x", ["a"], []) == ""
