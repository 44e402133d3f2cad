"""Strict YAML: every node knows its place, and what YAML readers disagree on is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.yaml_document import load as document
from gapline.orchestrator.yaml_document.faults import MOST_SHOWN, Faults, did_you_mean
from gapline.orchestrator.yaml_document.node import Items, Node, Scalar, Table

PATH = Path("file.yaml")


@pytest.fixture(params=["libyaml", "pure"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test runs with libyaml and with the parser that stands in where libyaml is missing."""
    monkeypatch.setattr(document, "_Loader", yaml.CSafeLoader if request.param == "libyaml" else yaml.SafeLoader)


def faults_of(text: str | bytes) -> list[str]:
    """All faults of a document as messages."""
    faults = Faults()
    try:
        document.parse(text if isinstance(text, bytes) else text.encode(), PATH, faults)
        faults.stop_if_any()
    except ConfigError as error:
        return [str(fault) for fault in error.faults]
    return []


def plain(node: Node | None) -> object:
    """A node as plain data."""
    match node:
        case Scalar():
            return node.value
        case Items():
            return [plain(value) for value in node.values]
        case Table():
            return {key: plain(entry.value) for key, entry in node.entries.items()}
        case None:
            return None


def parsed(text: str) -> Table:
    """A document without faults."""
    faults = Faults()
    table = document.parse(text.encode(), PATH, faults)
    faults.stop_if_any()
    return table


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-7", -7),
        ("0x1F", 31),
        ("0o17", 15),
        ("0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("none", "none"),
        ("y", "y"),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::31", "2001:db8::31"),
        ("2026-01-31", "2026-01-31"),
        ("6.14.11-4-pve", "6.14.11-4-pve"),
        ("'no'", "no"),
        ('"0777"', "0777"),
        ("'12:30:00'", "12:30:00"),
        ("'129'", "129"),
        ("-", None),
    ],
)
def test_scalars_mean_what_the_core_schema_says(text: str, value: object) -> None:
    """The YAML 1.2 core schema decides, and quotes make text."""
    if text == "-":
        assert plain(parsed("a:\n  -\n").entries["a"].value) == [None]
    else:
        assert plain(parsed(f"a: {text}\n").entries["a"].value) == value


@pytest.mark.parametrize(
    "text",
    ["no", "Yes", "ON", "off", "0777", "-012", "1_000", "0b11", "12:30:00", "1:30", ".inf", "-.INF", ".nan", "1e999"],
)
def test_what_readers_disagree_on_is_refused(text: str) -> None:
    """Neither of the two meanings is guessed, as a value, in a list or as a key."""
    assert len(faults_of(f"a: {text}\nb: [{text}]\n{text}: 1\n")) == 3


def test_places_count_from_one_and_in_characters() -> None:
    """Wide characters and Windows line ends do not shift a place."""
    node = parsed("größe: 1\r\nlist:\r\n  - ä: {b: 2}\r\n").entries["list"].value
    assert isinstance(node, Items)
    assert node.place[1:] == (3, 3)
    inner = node.values[0]
    assert isinstance(inner, Table)
    entry = inner.entries["ä"].value
    assert isinstance(entry, Table)
    assert entry.entries["b"].key.place[1:] == (3, 9)


def test_all_faults_come_together_in_order() -> None:
    """One run shows every fault, also beside a syntax error further down."""
    text = 'a: no\nb: 1\nb: 2\nc: &x 1\nd: *x\ne: !!str 5\nf: "\\0"\n? [k]\n: 1\ng: \'open\n'
    found = [fault.split(": ", 1) for fault in faults_of(text)]
    assert [place for place, _ in found][:-1] == [
        "file.yaml:1:4",
        "file.yaml:4:4",
        "file.yaml:5:4",
        "file.yaml:6:4",
        "file.yaml:7:4",
    ]
    assert "not YAML" in found[-1][1]


def test_duplicate_keys_name_the_first() -> None:
    """A second key of one name is refused at its place."""
    assert faults_of("a: 1\nb: 2\na: 3\n") == ["file.yaml:3:1: 'a' stands here a second time, first in line 1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file.yaml:1:1: empty"),
        ("# nothing\n", "file.yaml:1:1: empty"),
        ("- 1\n", "file.yaml:1:1: expected a mapping, got a list"),
        ("a: 1\n---\nb: 2\n", "file.yaml:2:1: a second document in one file"),
        (b"a: 1\nb: \xff\n", "file.yaml:2:4: not UTF-8"),
        ("a: 1\nbc: \u202ex\n", "file.yaml:2:5: the character U+202E has no place in this file"),
        ("a: \x00\n", "file.yaml:1:4: the character U+0000 has no place in this file"),
        (b"#" * (document.LARGEST + 1), f"file.yaml: larger than {document.LARGEST} bytes"),
    ],
)
def test_what_is_no_document_is_said_so(text: str | bytes, message: str) -> None:
    """There is one fault, and it says where."""
    assert faults_of(text) == [message]


def test_an_anchor_bomb_is_refused_at_once() -> None:
    """Aliases are never followed, so ten levels of ten cost a hundred faults and not ten thousand million nodes."""
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 11)]
    found = faults_of("\n".join(lines))
    assert len(found) == MOST_SHOWN + 1
    assert found[-1] == "file.yaml: … and 61 more faults"


@pytest.mark.parametrize("text", ["[" * 50_000, "{a: " * 50_000, "- " * 50_000, "? " * 50_000])
def test_deep_nesting_is_refused(text: str) -> None:
    """Neither our stack nor the parser's is exhausted."""
    assert len(faults_of(text)) == 1


def test_a_tab_gets_a_hint() -> None:
    """The commonest mistake is named."""
    faults = Faults()
    with pytest.raises(ConfigError, match=r"file\.yaml:2:1") as caught:
        document.parse(b"a:\n\tb: 1\n", PATH, faults)
    assert caught.value.hint == "Indent with blanks, not with tabs."


def test_hints_name_the_nearest_or_all() -> None:
    """Case does not matter; far words get the list; long lists are not shown."""
    assert did_you_mean("Adress", ["address", "user"]) == "Did you mean address?"
    assert did_you_mean("xyz", ["b", "a"]) == "Known: a, b."
    assert did_you_mean("xyz", [f"host{n}" for n in range(50)]) == ""
    assert did_you_mean("x" * 10**6, [f"host{n}" for n in range(50)]) == ""


@pytest.mark.parametrize("name", ["absent.yaml", "folder", "nul\x00.yaml"])
def test_a_file_that_cannot_be_read_is_a_config_error(tmp_path: Path, name: str) -> None:
    """The system's reason is passed on."""
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        document.read(tmp_path / name)


class TestProperties:
    """Whatever stands in the file."""

    PIECES = st.lists(
        st.sampled_from(
            [*"a1:-?[]{},&*!|>'\"%@#\n \t~", ": ", "- ", "\n  ", "no", "0777", "&x ", "*x", "<<: ", "---\n", "é", "\r"]
        ),
        max_size=40,
    ).map("".join)

    @given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | PIECES.map(str.encode))
    def test_any_bytes_give_a_table_or_a_config_error(self, data: bytes) -> None:
        """Nothing else is ever raised."""
        faults_of(data)

    DATA = st.recursive(
        st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=8)
        | st.integers(-(10**18), 10**18)
        | st.booleans()
        | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "no", "1:30", "x y"]), inner),
        max_leaves=12,
    )

    @given(DATA)
    def test_json_is_read_back(self, data: object) -> None:
        """JSON is YAML 1.2, and quotes what would be refused."""
        written = json.dumps({"data": data}, ensure_ascii=False)
        assert plain(parsed(written).entries["data"].value) == data
