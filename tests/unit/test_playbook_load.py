"""Playbook files: what they say, what overlays change, and every fault at its line and column."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.limit import Limit
from gapline.orchestrator.playbook.chapter import read_chapter
from gapline.orchestrator.playbook.load import load, shipped
from gapline.orchestrator.playbook.playbook import Level
from gapline.orchestrator.yaml_document import load as document
from gapline.orchestrator.yaml_document.faults import Faults

BASE = """\
version: 1
name: base
about: For tests.
runs: [quick, full]
fail_on: medium
agents:
  host.cpu:
    level: quick
    limits:
      lowest: {value: 0.9, origin: judgement}
      names: {value: [a, b], origin: the vendor's list}
      strict: {value: true, origin: judgement}
  host.numa: {level: full}
  bench.roof: {level: bench}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `base.yaml` in it."""
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def overlay(folder: Path, text: str, name: str = "mine.yaml") -> str:
    """The path of a file that extends the base."""
    path = folder / name
    path.write_text(f"version: 1\nextends: base.yaml\n{text}")
    return str(path)


def faults_of(path: str) -> list[tuple[str, str]]:
    """All faults of a playbook, without the folder, with their hints."""
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert caught.value.exit_code == 2
    return [(str(fault).replace(str(Path(path).parent) + "/", ""), fault.hint) for fault in caught.value.faults]


def test_the_shipped_playbooks_load() -> None:
    """Each of the four, found through the package; the levels they run tell them apart."""
    assert set(shipped()) == {"bench", "full", "nightly", "quick"}
    books = {name: load(name) for name in shipped()}
    assert {name: book.name for name, book in books.items()} == {name: name for name in books}
    assert all(book.about for book in books.values())
    assert books["quick"].runs == (Level.QUICK,)
    assert books["bench"].runs == (Level.QUICK, Level.FULL, Level.BENCH)
    assert books["nightly"].entries == books["full"].entries
    assert set(books["quick"].agents) <= set(books["full"].agents) <= set(books["bench"].agents)


def test_a_playbook_as_it_is_written(folder: Path) -> None:
    """Levels decide what runs; limits keep their types and their origins; places are kept."""
    book = load(str(folder / "base.yaml"))
    assert (book.name, book.about, book.fail_on) == ("base", "For tests.", Severity.MEDIUM)
    assert list(book.agents) == ["host.cpu", "host.numa"]
    assert list(book.entries) == ["host.cpu", "host.numa", "bench.roof"]
    entry = book.agents["host.cpu"]
    assert entry.level is Level.QUICK
    assert entry.limits["names"] == Limit(value=("a", "b"), origin="the vendor's list")
    assert entry.limits.number("lowest") == 0.9
    assert entry.limits["strict"].value is True
    assert entry.place == (folder / "base.yaml", 7, 3)
    assert entry.limit_places["names"].cited == f"{folder}/base.yaml:11"
    assert list(book.limits("host.cpu")) == ["lowest", "names", "strict"]
    assert list(book.limits("host.none")) == []


def test_an_overlay_changes_single_things(folder: Path) -> None:
    """A limit, a level, a switch; everything else is left as it was below."""
    path = overlay(
        folder,
        "fail_on: none\nagents:\n"
        "  host.cpu: {limits: {lowest: {value: 1, origin: our lab}}}\n"
        "  host.numa: {enabled: false}\n"
        "  bench.roof: {level: full}\n"
        "  their.agent: {level: quick}\n",
    )
    book = load(path)
    assert (book.name, book.fail_on, book.runs) == ("mine", None, (Level.QUICK, Level.FULL))
    assert list(book.agents) == ["host.cpu", "bench.roof", "their.agent"]
    assert book.limits("host.cpu")["lowest"] == Limit(value=1, origin="our lab")
    assert book.limits("host.cpu")["names"].value == ("a", "b")
    assert book.entries["host.cpu"].limit_places["lowest"].cited == f"{folder}/mine.yaml:5"


def test_overlays_stack(folder: Path) -> None:
    """The nearest file wins, and paths are seen from the file that names them."""
    overlay(folder, "agents: {host.numa: {enabled: false}}\nruns: bench\n")
    (folder / "sub").mkdir()
    top = folder / "sub" / "top.yaml"
    top.write_text("version: 1\nextends: ../mine.yaml\nagents: {host.numa: {enabled: true}}\n")
    book = load(str(top))
    assert book.entries["host.numa"].enabled
    assert book.runs == (Level.BENCH,)
    assert book.fail_on is Severity.MEDIUM


def test_a_user_file_may_extend_a_shipped_one(folder: Path) -> None:
    """By its bare name, even from a file of the same name."""
    path = folder / "full.yaml"
    path.write_text("version: 1\nextends: full\nfail_on: critical\n")
    book = load(str(path))
    assert book.entries == load("full").entries
    assert book.fail_on is Severity.CRITICAL


def test_all_faults_come_together(folder: Path) -> None:
    """Every fault of the file, with what was probably meant."""
    path = overlay(
        folder,
        """\
run: [quick]
runs: [quick, ful]
fail_on: severe
about: 7
agents:
  host.cp: {enabled: true}
  host.numa: {enabled: no, levle: quick}
  host.x:
    level: fast
    limits: {a: 3, b: {value: 3}, c: {value: , origin: x}, d: {valu: 3, origin: 3}}
  host.cpu: {limits: {lowest: {value: low, origin: t}, names: {value: 3, origin: t}}}
  host.y: 3
""",
    )
    assert faults_of(path) == [
        ("mine.yaml:3:1: unknown key in the playbook: 'run'", "Did you mean runs?"),
        ("mine.yaml:4:15: expected one of quick, full, bench, got 'ful'", "Did you mean full?"),
        ("mine.yaml:5:10: expected one of none, critical, high, medium, low, info, got 'severe'", ""),
        ("mine.yaml:6:8: expected text, got '7'", "Quote it if it is meant as text."),
        ("mine.yaml:8:3: agent host.cp has no level", "Did you mean host.cpu?"),
        ("mine.yaml:9:24: no is a word to some YAML readers and false to others", 'Write false, or "no" for the word.'),
        ("mine.yaml:9:28: unknown key in agent host.numa: 'levle'", "Did you mean level?"),
        ("mine.yaml:11:12: expected one of quick, full, bench, got 'fast'", ""),
        (
            "mine.yaml:12:17: expected a limit with value and origin, got '3'",
            "Write {value: …, origin: …}; the origin says where the number comes from.",
        ),
        (
            "mine.yaml:12:23: origin is missing",
            'Say where the value comes from; "judgement" if no document gives it.',
        ),
        ("mine.yaml:12:46: expected a number, a word, true, false or a list of words, got nothing", ""),
        ("mine.yaml:12:63: value is missing", ""),
        ("mine.yaml:12:64: unknown key in a limit: 'valu'", "Did you mean value?"),
        ("mine.yaml:12:81: expected text, got '3'", "Quote it if it is meant as text."),
        ("mine.yaml:13:23: limit lowest is a number in base.yaml:10, and words here", ""),
        ("mine.yaml:13:56: limit names is words in base.yaml:11, and a number here", ""),
        ("mine.yaml:14:3: agent host.y has no level", "Known: bench.roof, host.cpu, host.numa."),
        ("mine.yaml:14:11: expected agent host.y as a mapping, got '3'", ""),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("version: 3\nwhat: 1\n", "a.yaml:1:1: version 3 of the format is not known"),
        ("name: x\n", "a.yaml:1:1: version is missing"),
        ("version: 1\nruns: []\n", "a.yaml:2:7: expected at least one level"),
        ("version: 1\nextends: ful\n", "a.yaml:2:10: no playbook is called 'ful'"),
        ("version: 1\nextends: b.yaml\n", "a.yaml:2:10: b.yaml: cannot be read: No such file or directory"),
        ("version: 1\nextends: a.yaml\n", "a.yaml:2:10: the playbook extends itself: a.yaml → a.yaml"),
        ("version: 1\nextends: ../x/a.yaml\n", "a.yaml:2:10: the playbook extends itself: a.yaml → a.yaml"),
    ],
)
def test_single_faults(tmp_path: Path, text: str, fault: str) -> None:
    """What is missing, unknown or circular."""
    path = tmp_path / "x" / "a.yaml"
    path.parent.mkdir()
    path.write_text(text)
    assert [message for message, _ in faults_of(str(path))] == [fault]


def test_faults_of_both_files_of_a_circle_are_kept(tmp_path: Path) -> None:
    """A circle ends the reading and hides nothing that was found before."""
    (tmp_path / "a.yaml").write_text("version: 1\nextends: b.yaml\nrun: 1\n")
    (tmp_path / "b.yaml").write_text("version: 1\nextends: a.yaml\n")
    assert [message for message, _ in faults_of(str(tmp_path / "a.yaml"))] == [
        "a.yaml:3:1: unknown key in the playbook: 'run'",
        "b.yaml:2:10: the playbook extends itself: a.yaml → b.yaml → a.yaml",
    ]


@pytest.mark.parametrize(
    ("wanted", "message", "hint"),
    [
        ("fulll", "no playbook is called 'fulll'", "Did you mean full?"),
        ("", "no playbook is called ''", "Known: bench, full, nightly, quick."),
        ("absent.yaml", "absent.yaml: cannot be read: No such file or directory", ""),
        ("./", "cannot be read: Is a directory", ""),
    ],
)
def test_what_is_no_playbook(wanted: str, message: str, hint: str) -> None:
    """A bare word is a shipped playbook, anything else a file."""
    with pytest.raises(ConfigError) as caught:
        load(wanted)
    assert message in str(caught.value)
    assert hint in caught.value.hint


NOISE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["quick", "none", "full"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["host.a", "level", "enabled", "limits", "value", "origin"]), inner)
    ),
    max_leaves=20,
)
KEYS = ("name", "about", "extends", "runs", "fail_on", "agents")


@given(
    st.dictionaries(st.sampled_from(KEYS), NOISE).map(lambda shape: yaml.safe_dump({"version": 1, **shape}).encode())
)
def test_any_shape_gives_a_chapter_or_a_config_error(data: bytes) -> None:
    """Nothing else is ever raised."""
    chapter_or_error(data)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: f"version: 1\nagents:\n  {text}".encode()))
def test_any_bytes_give_a_chapter_or_a_config_error(data: bytes) -> None:
    """Nothing else is ever raised."""
    chapter_or_error(data)


def chapter_or_error(data: bytes) -> None:
    """Read a chapter the way `load` does, from bytes."""
    faults = Faults()
    with suppress(ConfigError):
        read_chapter(document.parse(data, Path("a.yaml"), faults), faults)
