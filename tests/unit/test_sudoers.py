"""The sudoers lines: exact, escaped, and accepted by visudo."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.collect.sudoers import sudoers
from gapline.orchestrator.model.source import Command, File, Glob, Script, Stat

ITEMS = [
    Item("h", File("/etc/pve/lxc/{ct}.conf", root=True), Binding("129", "4711", "", "")),
    Item("h", File("/not/root")),
    Item("h", Glob("/sys/bus/pci/0000:*/config", root=True)),
    Item("h", Stat("/p/*/a,b=c", root=True)),
    Item("h", Command(("dmidecode", "-t", "17", "a b", "x\\y", "#z", "!", "^$", '"q"'), root=True, timeout=20)),
    Item("h", Script("no", "id", root=True)),
    Item("h/129", File("/inside", root=True), enter="129"),
]


def accepted(text: str) -> str:
    """What visudo says against it; empty when it is fine."""
    if shutil.which("visudo") is None:
        pytest.skip("there is no visudo")
    done = subprocess.run(["visudo", "-cf", "-"], input=text.encode(), check=False, capture_output=True, timeout=10)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).decode()


def test_exact_lines() -> None:
    """One line for each single read that needs root, with everything special made literal."""
    text = sudoers(ITEMS, "audit")
    limited = "audit ALL=(root) NOPASSWD: /usr/bin/timeout -k 1"
    assert text.splitlines() == [
        'Defaults:audit env_reset, secure_path="/usr/sbin:/usr/bin:/sbin:/bin"',
        limited + r" 10 cat -- /etc/pve/lxc/129.conf",
        limited + r" 10 sh -c exec\ grep\ -aH\ ''\ --\ /sys/bus/pci/0000\:\*/config",
        limited + r" 10 sh -c exec\ stat\ -c\ '%n|%F|%t|%T|%a|%u|%g'\ --\ /p/\*/a\,b\=c",
        limited + r' 20 dmidecode -t 17 a\ b x\\\\y \#z \! \^$ "q"',
    ]
    assert accepted(text) == ""


def test_nothing_to_grant() -> None:
    """Without a read that needs root there is no file."""
    assert sudoers(ITEMS[1:2], "audit") == ""


@pytest.mark.parametrize("user", ["", "a b", "ALL", "ALL, root", "x\ny", "%wheel"])
def test_names_that_are_none(user: str) -> None:
    """A name that would change the meaning of the line is refused."""
    with pytest.raises(ValueError, match="no user name"):
        sudoers(ITEMS, user)


@settings(deadline=None, max_examples=50)
@given(argument=st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20))
def test_any_argument_gives_a_sound_file(argument: str) -> None:
    """Whatever a path or an argument contains, visudo accepts the file."""
    items = [Item("h", Command(("cmd", argument), root=True)), Item("h", File("/" + argument, root=True))]
    assert accepted(sudoers(items, "audit")) == ""
