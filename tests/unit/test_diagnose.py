"""From exit status, standard error and duration to a typed problem."""

from __future__ import annotations

import pytest

from gapline.orchestrator.collect.diagnose import diagnose, exit_status, stderr
from gapline.orchestrator.collect.entry import container_problem
from gapline.orchestrator.collect.frames import Frame
from gapline.orchestrator.collect.group import Group
from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.model.problem import ProblemKind as Kind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat

FILE, GLOB, STAT, SCRIPT = File("/x"), Glob("/x/*"), Stat("/x*"), Script("s", "text")
COMMAND = Command(("lspci", "-vv"), timeout=10, package="pciutils")


def frame(status: str, err: bytes = b"", out: bytes = b"", seconds: float = 0.0, *, truncated: bool = False) -> Frame:
    """What came back for one item."""
    return Frame(0, out, err, status, seconds, truncated)


@pytest.mark.parametrize(
    ("source", "came", "kind"),
    [
        (FILE, frame("0"), None),
        (FILE, frame("1", b"head: cannot open '/x' for reading: No such file or directory\n"), Kind.MISSING),
        (FILE, frame("1", b"head: /x: No such file or directory\n"), Kind.MISSING),
        (FILE, frame("1", b"head: /x/y: Not a directory\n"), Kind.MISSING),
        (FILE, frame("1", b"head: error reading '/proc/9/x': No such process\n"), Kind.MISSING),
        (FILE, frame("1", b"head: cannot open '/x' for reading: Permission denied\n"), Kind.DENIED),
        (FILE, frame("1", b"head: error reading '/x': Operation not permitted\n"), Kind.DENIED),
        (FILE, frame("1", b"head: error reading '/x': Input/output error\n", b"half"), Kind.FAILED),
        (FILE, frame("n"), Kind.FAILED),
        (FILE, frame("d"), Kind.DENIED),
        (FILE, frame("x\x1b[31m"), Kind.UNREADABLE),
        (FILE, frame(""), Kind.UNREADABLE),
        (GLOB, frame("0", b"", b"/x/a:1\n"), None),
        (GLOB, frame("1"), None),  # every file is empty
        (GLOB, frame("2", b"grep: /y/*: No such file or directory\n", b"/x/a:1\n"), None),
        (GLOB, frame("2", b"grep: /x/*: No such file or directory\n"), Kind.MISSING),
        (GLOB, frame("2", b"grep: /x/b: Permission denied\n", b"/x/a:1\n"), Kind.DENIED),
        (GLOB, frame("2", b"grep: /x/b: Invalid argument\n", b"/x/a:1\n"), None),
        (GLOB, frame("2", b"grep: /x/b: Invalid argument\n"), Kind.FAILED),
        (GLOB, frame("126", b"sh: 1: grep: Argument list too long\n"), Kind.TOO_LARGE),
        (STAT, frame("1", b"stat: cannot statx '/x*': No such file or directory\n"), Kind.MISSING),
        (STAT, frame("1", b"stat: cannot stat '/y': No such file or directory\n", b"/x|...\n"), None),
        (COMMAND, frame("127", b"sh: 1: lspci: not found\n"), Kind.COMMAND_MISSING),
        (COMMAND, frame("126", b"sh: 1: lspci: Permission denied\n"), Kind.DENIED),
        (COMMAND, frame("1", b"lspci: no access\n"), Kind.FAILED),
        (COMMAND, frame("3"), Kind.FAILED),
        (COMMAND, frame("143", seconds=10.0), Kind.TIMED_OUT),
        (COMMAND, frame("137", b"Killed\n", seconds=11.02), Kind.TIMED_OUT),
        (COMMAND, frame("124", seconds=9.99), Kind.TIMED_OUT),
        (COMMAND, frame("124", seconds=3.0), Kind.FAILED),
        (COMMAND, frame("137", seconds=0.5), Kind.FAILED),
        (COMMAND, frame("a", seconds=12.0), Kind.TIMED_OUT),
        (COMMAND, frame("w"), Kind.WITHHELD),
        (COMMAND, frame("141", truncated=True), None),
        (COMMAND, frame("141"), Kind.FAILED),
        (SCRIPT, frame("0"), None),
        (SCRIPT, frame("2", b"sh: 1: Syntax error\n"), Kind.FAILED),
        (SCRIPT, frame("127", b"sh: 1: jq: not found\n"), Kind.FAILED),
        (SCRIPT, frame("1", b"dmesg: read kernel buffer failed: Operation not permitted\n"), Kind.DENIED),
        (Command(("x",), root=True), frame("1", b"sudo: a password is required\n"), Kind.DENIED),
        (File("/x", root=True), frame("1", b"Sorry, user audit is not allowed to execute 'x'\n"), Kind.DENIED),
    ],
)
def test_diagnose(source: Source, came: Frame, kind: Kind | None) -> None:
    """Each way of failing has its kind, and says something."""
    problem = diagnose(source, came)
    assert (problem.kind if problem else None) == kind
    assert problem is None or problem.detail


def test_hints_say_what_to_do() -> None:
    """The package that brings a command, and the sudoers lines."""
    missing = diagnose(COMMAND, frame("127"))
    refused = diagnose(File("/x", root=True), frame("1", b"sudo: a password is required\n"))
    assert missing is not None
    assert missing.hint == "apt install pciutils"
    assert refused is not None
    assert "--sudoers" in refused.hint


def test_told_problem_is_taken_as_it_is() -> None:
    """A replay tells the problem itself; nonsense in its place is a problem too."""
    told = Frame(
        0, b"", b"", "1", 0.0, truncated=False, problem="%7B%22kind%22%3A%22denied%22%2C%22detail%22%3A%22no%22%7D"
    )
    problem, nonsense = (
        diagnose(FILE, told),
        diagnose(FILE, Frame(0, b"", b"", "0", 0.0, truncated=False, problem="%7B")),
    )
    assert problem is not None
    assert (problem.kind, problem.detail) == (Kind.DENIED, "no")
    assert nonsense is not None
    assert nonsense.kind is Kind.UNREADABLE


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (b"Killed\n", b""),
        (b"Terminated\nreal\n", b"real\n"),
        (b'main: line 35:  1905 Killed                  "$@"\nreal\n', b"real\n"),
        (b'sh: line 35:  1905 Terminated              "$@"\n', b""),
        (b"real: Killed by signal\n", b"real: Killed by signal\n"),
        (b"Killed process 12 (python)\n", b"Killed process 12 (python)\n"),
    ],
)
def test_remarks_of_shells_are_left_out(said: bytes, left: bytes) -> None:
    """What a shell says about a child that was ended is no output of the source."""
    assert stderr(frame("137", said)) == left


def test_exit_status() -> None:
    """Words and nonsense are no exit status."""
    assert [exit_status(frame(status)) for status in ("0", "137", "a", "", "99999999", "²", "-1")] == [
        0, 137, None, None, None, None, None,
    ]  # fmt: skip


INSIDE = ((0, Item("h/129", FILE, enter="129")),)
GROUP = Group("129", INSIDE, INSIDE)


@pytest.mark.parametrize(
    ("came", "said", "answered", "kind"),
    [
        (frame("1"), b"lxc-attach: 129: ../src/lxc/attach.c: 1024 Failed to get init pid\n", False, Kind.NOT_RUNNING),
        (frame("1"), b"lxc-attach: 129: tools/lxc_attach.c: Container is not running\n", False, Kind.NOT_RUNNING),
        (
            frame("127"),
            b'lxc-attach: 129: Failed to exec "/bin/sh": No such file or directory\n',
            False,
            Kind.NOT_ENTERED,
        ),
        (frame("127"), b"sh: 40: lxc-attach: not found\n", False, Kind.COMMAND_MISSING),
        (frame("137", seconds=6.0), b"", False, Kind.NOT_ENTERED),
        (frame("a", seconds=6.0), b"", False, Kind.NOT_ENTERED),
        (frame("137", seconds=6.0), b"", True, Kind.TIMED_OUT),
        (frame("137", seconds=1.0), b"", True, Kind.DROPPED),
        (frame("0", seconds=1.0), b"", True, Kind.DROPPED),
        (frame("1"), b"lxc-attach: Permission denied\n", False, Kind.NOT_ENTERED),
        (frame("d"), b"", False, Kind.DENIED),
    ],
)
def test_container_that_lets_nobody_in(came: Frame, said: bytes, answered: bool, kind: Kind) -> None:
    """Stopped, without a shell, frozen, stopped meanwhile: told apart."""
    assert container_problem(GROUP, came, said, answered=answered).kind is kind
