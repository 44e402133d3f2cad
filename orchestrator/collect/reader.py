"""How each kind of source is read: the line of shell that does it, or the exact command for sudo."""

from __future__ import annotations

from collections.abc import Sequence

from gapline.orchestrator.collect.fill import fill, patterns, word
from gapline.orchestrator.collect.group import DEFAULT_LIMIT, seconds, sudo_wait
from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.collect.shell import KILL_AFTER
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.source import Command, File, Glob, Script, Source, Stat

STAT_FORMAT = "%n|%F|%t|%T|%a|%u|%g"

_GREP = "grep -aH '' --"
_STAT = f"stat -c '{STAT_FORMAT}' --"

SEPARATOR = "/proc/./version"
"""Read behind each member of a batch: no source spells the path like this, so its line ends the member before it."""


def batch(number: int, members: Sequence[tuple[int, Item]]) -> str:
    """The line of the script that reads all members by one process, behind what must hold for them."""
    sources = [item.source for _, item in members]
    program = _STAT if isinstance(sources[0], Stat) else _GREP
    words = (f"{_paths(item)} {SEPARATOR}" for _, item in members)
    root = f"_root {number} && " if sources[0].root else ""
    # What came before goes out: if a file hangs, as those of a dead lxcfs do, it is not lost.
    flush = "_flush\n" if members[0][1].enter else ""
    return f"{flush}{root}_do {number} {program} {' '.join(words)}\n"


def evaluate(number: int, item: Item) -> str:
    """The line that runs a script in the shell it shares with others.

    Raises:
        TypeError: nothing but scripts can do that.
    """
    if not isinstance(item.source, Script):
        raise TypeError(item.source)
    return f"_do {number} _eval {word(item.source.text)}\n"


def _paths(item: Item) -> str:
    match item.source:
        case File(path=path):
            return word(path, item.binding)
        case Glob(pattern=several) | Stat(patterns=several):
            return patterns(several, item.binding)
        case Command() | Script():
            raise TypeError(item.source)


def call(number: int, item: Item, become: Become, *, allow_init: bool) -> str:
    """The line of the script that reads an item, behind what must hold for that: being root, a driver that is up."""
    source, binding = item.source, item.binding
    wakes = isinstance(source, Command | Script) and source.wakes_gpu and not allow_init
    gpu = f"_gpu {number} && " if wakes else ""
    if source.root and become is Become.SUDO_READS:
        argv = " ".join(map(word, sudo_argv(source, binding)))
        return f"{gpu}_run {number} {sudo_wait(source)} {_cut(source)}{argv}\n"
    root = f"_root {number} && " if source.root else ""
    return f"{root}{gpu}{_reader(number, source, binding)}\n"


def _reader(number: int, source: Source, binding: Binding | None) -> str:
    match source:
        case File(path=path):
            return f"_file {number} {source.limit + 1} {word(path, binding)}"
        case Glob(pattern=pattern):
            if all(one.startswith(("/sys/", "/proc/sys/")) for one in pattern.split()):
                return f"_do {number} {_GREP} {patterns(pattern, binding)}"
            return f"_grep {number} {patterns(pattern, binding)}"
        case Stat(patterns=several):
            return f"_do {number} {_cut(source)}{_STAT} {patterns(several, binding)}"
        case Command(argv=argv):
            words = " ".join(word(argument, binding) for argument in argv)
            return f"_run {number} {seconds(source)} {_cut(source)}{words}"
        case Script(text=text):
            return f"_run {number} {seconds(source)} {_cut(source)}sh -c {word(text)}"


def _cut(source: Source) -> str:
    return f"_cut {source.limit + 1} " if source.limit > DEFAULT_LIMIT else ""


def sudo_argv(source: Source, binding: Binding | None) -> tuple[str, ...]:
    """The exact command that reads a single source as root.

    It starts with `timeout` because only root can end it. Patterns are expanded by a shell that runs as root (the
    user may not be able to list the directory), and the whole text of that shell is what sudo is told to allow:
    a wildcard in sudoers would also match blanks and further arguments (sudoers(5), "Wildcards").
    """
    head = ("sudo", "-n", "timeout", "-k", str(KILL_AFTER), str(seconds(source)))
    match source:
        case File(path=path):
            return (*head, "cat", "--", fill(path, binding))
        case Glob(pattern=pattern):
            return (*head, "sh", "-c", f"exec {_GREP} {patterns(pattern, binding)}")
        case Stat(patterns=several):
            return (*head, "sh", "-c", f"exec {_STAT} {patterns(several, binding)}")
        case Command(argv=argv):
            return (*head, *(fill(argument, binding) for argument in argv))
        case Script():
            return ()
