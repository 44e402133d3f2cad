"""Scripts as text: quoting, placeholders, what each kind of source becomes, and how an end is recognised."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapline.orchestrator.collect.fill import fill, patterns, shown, word
from gapline.orchestrator.collect.group import Batch, Group, arrange, inner_nonce
from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.collect.reading import piece_number
from gapline.orchestrator.collect.replay import answer, ends
from gapline.orchestrator.collect.script import render
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat

ANY = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
BINDINGS = st.builds(Binding, ANY, ANY, ANY, ANY)
NONCE, TAG = "0a" * 16, "0b" * 16


def body(source: Source, become: Become = Become.NONE, binding: Binding | None = None) -> str:
    """The line that reads a source."""
    lines = render([Item("h", source, binding)], nonce=NONCE, tag=TAG, become=become).splitlines()
    return lines[lines.index(next(line for line in lines if line.startswith("#: 0 "))) + 1]


@given(text=ANY, binding=BINDINGS)
def test_a_word_is_one_word(text: str, binding: Binding) -> None:
    """Whatever stands in it, a shell takes it as one word with exactly this text."""
    assert shlex.split(word(text, binding)) == [fill(text, binding)]


def test_values_are_not_filled_again() -> None:
    """A value that looks like a placeholder stays what it is."""
    binding = Binding("{init}", "{ct}", "c", "g")
    assert fill("{ct}-{init}-{other}", binding) == "{init}-{ct}-{other}"
    assert fill("{ct}", None) == "{ct}"


def test_patterns_stay_patterns_and_nothing_else_does() -> None:
    """Only * and ? of the source are wildcards; those of a value are not."""
    binding = Binding("a *", "1", "", "")
    assert patterns("/x/{ct}/*.conf /y/?[a]$b", binding) == "/x/'a *'/*.conf /y/?'[a]$b'"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (File("/etc/os-release"), "_file 0 262145 /etc/os-release"),
        (File("/sys/kernel/mm/ksm/run"), "_file 0 262145 /sys/kernel/mm/ksm/run"),
        (File("/proc/{init}/limits"), "_file 0 262145 /proc/4711/limits"),
        (File("/x", root=True), "_root 0 && _file 0 262145 /x"),
        (Glob("/sys/a/*/b"), "_do 0 grep -aH '' -- /sys/a/*/b"),
        (Glob("/etc/*.conf"), "_grep 0 /etc/*.conf"),
        (Stat("/dev/nv*"), "_do 0 stat -c '%n|%F|%t|%T|%a|%u|%g' -- /dev/nv*"),
        (Command(("a", "b c"), timeout=2.5), "_run 0 3 a 'b c'"),
        (Command(("a",), limit=300_000), "_run 0 10 _cut 300001 a"),
        (Command(("nvidia-smi",), wakes_gpu=True), "_gpu 0 && _run 0 10 nvidia-smi"),
        (Script("s", "echo 'x'", root=True), "_root 0 && _run 0 10 sh -c 'echo '\"'\"'x'\"'\"''"),
    ],
)
def test_lines(source: Source, line: str) -> None:
    """What each kind of source becomes."""
    assert body(source, binding=Binding("129", "4711", "/c", "/g")) == line


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (File("/x", root=True), "_run 0 12 sudo -n timeout -k 1 10 cat -- /x"),
        (Command(("dmidecode", "-t", "17"), root=True), "_run 0 12 sudo -n timeout -k 1 10 dmidecode -t 17"),
        (Glob("/etc/pve/lxc/*.conf", root=True),
         "_run 0 12 sudo -n timeout -k 1 10 sh -c 'exec grep -aH '\"'\"''\"'\"' -- /etc/pve/lxc/*.conf'"),
        (File("/x"), "_file 0 262145 /x"),
    ],
)  # fmt: skip
def test_single_sudo_reads(source: Source, line: str) -> None:
    """Only what needs root goes through sudo, as one exact command."""
    assert body(source, Become.SUDO_READS) == line


@pytest.mark.parametrize(
    ("path", "yes"),
    [
        ("/sys/class/net/eth0/speed", True),
        ("/proc/sys/vm/swappiness", True),
        ("/sys/bus/pci/devices/0000:01:00.0/config", False),
        ("/sys/bus/pci/devices/0000:01:00.0/resource0", False),
        ("/sys/kernel/debug/x", False),
        ("/proc/1/environ", False),
        ("/proc/1/root/etc/hosts", False),
        ("/etc/hostname", False),
    ],
)
def test_only_text_of_the_kernel_is_read_together(path: str, yes: bool) -> None:
    """A pipe would hold up the others, and binary files have no lines."""
    pieces = arrange([Item("h", File(path)), Item("h", File("/proc/version"))], Become.NONE)
    assert (len(pieces) == 1) is yes


def test_neighbours_share_a_process() -> None:
    """Files and patterns by one `grep`, metadata by one `stat`; what needs root apart, and nothing out of order."""
    items = [
        *(Item("h", source) for source in (File("/proc/a"), Glob("/sys/b/*"), Stat("/dev/x"), Stat("/dev/y"))),
        Item("h", File("/proc/r", root=True)),
        Item("h", Glob("/sys/r/*", root=True)),
        Item("h", File("/proc/c")),
    ]
    lines = [line for line in render(items, nonce=NONCE, tag=TAG).splitlines() if "/proc/./version" in line]
    assert lines == [
        "_do 7 grep -aH '' -- /proc/a /proc/./version /sys/b/* /proc/./version",
        "_do 8 stat -c '%n|%F|%t|%T|%a|%u|%g' -- /dev/x /proc/./version /dev/y /proc/./version",
        "_root 9 && _do 9 grep -aH '' -- /proc/r /proc/./version /sys/r/* /proc/./version",
    ]
    assert not any(isinstance(piece, Batch) for piece in arrange(items, Become.NONE, together=False))


def test_items_of_a_container_go_together() -> None:
    """One script within for each container, where its first item stands."""
    one, two = File("/1"), File("/2")
    items = [
        Item("h", one),
        Item("a", one, enter="a"),
        Item("b", one, enter="b"),
        Item("h", two),
        Item("a", two, enter="a"),
    ]
    pieces = arrange(items, Become.NONE)
    assert [piece_number(piece) for piece in pieces] == [0, 1, 2, 3]
    assert [number for number, _ in pieces[1].members] == [1, 4] if isinstance(pieces[1], Group) else False


def test_nonces_within_tell_nothing() -> None:
    """The script for a container holds neither the outer nonce nor another container's."""
    items = [Item("a", File("/1"), enter="a"), Item("b", File("/1"), enter="b")]
    script = render(items, nonce=NONCE, tag=TAG)
    nested = shlex.split(script[script.index("\nS=") + 1 :].split("\n_root", 1)[0])[0]
    assert inner_nonce(NONCE, 0) in nested
    assert NONCE not in nested
    assert inner_nonce(NONCE, 1) not in nested


HOSTILE_TEXT = ANY.map(lambda text: text + "\n}\n_m x\n#: 7 h file:/x\n$(id)`id`'\"\\")
SOURCES = st.one_of(
    st.builds(File, HOSTILE_TEXT),
    st.builds(Glob, HOSTILE_TEXT),
    st.builds(Stat, HOSTILE_TEXT),
    st.builds(Command, st.lists(HOSTILE_TEXT, min_size=1, max_size=3).map(tuple)),
    st.builds(Script, HOSTILE_TEXT, HOSTILE_TEXT),
)
ITEMS = st.lists(
    st.builds(Item, ANY.filter(bool), SOURCES, st.none() | BINDINGS, st.none() | st.sampled_from(["a", "b'c"])),
    max_size=6,
)


@settings(deadline=None, max_examples=40)  # starts a shell each time
@given(items=ITEMS)
def test_any_script_is_sound_and_knows_its_end(items: list[Item]) -> None:
    """Whatever the sources contain, a shell can parse it, and only the whole of it counts as complete."""
    script = render(items, nonce=NONCE, tag=TAG).encode()
    assert subprocess.run(["/bin/sh", "-n"], input=script, check=False, capture_output=True, timeout=10).stderr == b""
    assert ends(script)
    assert [cut for cut in range(len(script)) if script[cut : cut + 1] == b"\n" and ends(script[: cut + 1])] == [
        len(script) - 1
    ]


@settings(deadline=None)
@given(items=ITEMS)
def test_replay_asks_for_every_item(items: list[Item]) -> None:
    """The comment lines name every target and key exactly, in every script."""
    asked: list[tuple[str, str]] = []

    def lookup(target: str, key: str) -> Capture | None:
        asked.append((target, key))
        return None

    answer(render(items, nonce=NONCE, tag=TAG).encode(), lookup)
    assert {(item.target, item.source.key) for item in items} <= set(asked)


def test_shown() -> None:
    """Sources as a person would type them."""
    binding = Binding("129", "4711", "/c", "/g")
    sources: tuple[Source, ...] = (
        File("/proc/{init}/x"),
        Glob("/a/{ct}/* /b"),
        Command(("a", "b c", "{ct}")),
        Script("name", "text"),
    )
    assert [shown(Item("h", source, binding)) for source in sources] == [
        "/proc/4711/x",
        "/a/129/* /b",
        "a 'b c' 129",
        "name",
    ]
