"""From items to one POSIX `sh` script for `sh -s`. Pure: the same items give the same script.

The whole script is one function and its last line calls it, so a script that arrives cut off runs nothing. The first
line ends with the nonce and the last line is ``_m <nonce>``: by that a reader knows the end of a script. Every item
has a comment line ``#: <number> <target> <key>`` before it; a replay server knows it by that.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from gapline.orchestrator.collect import shell
from gapline.orchestrator.collect.fill import fill, paths, patterns, word
from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.source import KIB, Command, File, Glob, Script, Source, Stat

BIG = 256 * KIB
"""Sources that may be bigger than this (the default limit) are cut on the target too."""

SUDO_SECONDS = 10
"""Time-out for single files and patterns read through sudo; nobody but root could end such a reader."""

ENTER_SECONDS = 5
"""Beyond the time-outs of its items: for entering a container and for its files."""

STAT_FORMAT = "%n|%F|%t|%T|%a|%u|%g"

CALL = "_m"
"""Name of the function around everything. The script ends with a line of this name and the nonce."""

# Not /proc/sys: its files answer the first read only (proc_dointvec in kernel/sysctl.c), and dash reads byte by byte.
_ONE_LINE_TREES = (
    "/sys/block/",
    "/sys/bus/",
    "/sys/class/",
    "/sys/devices/",
    "/sys/fs/cgroup/",
    "/sys/kernel/mm/",
    "/sys/module/",
)
# Binary sysfs attributes: a shell's `read` drops NUL bytes without a word.
_BINARY_NAMES = frozenset(
    ("bios", "config", "data", "descriptors", "edid", "eeprom", "nvmem", "raw", "rom", "vpd")  # each seen in sysfs
)
_BINARY_PARTS = ("/resource", "/notes/", "/sections/", "/firmware", "/of_node/", "/acpi/tables/")


@dataclass(frozen=True, slots=True)
class Group:
    """The items that are read inside one container, by their numbers. Its own number is its first member's."""

    container: str
    members: tuple[tuple[int, Item], ...]

    @property
    def number(self) -> int:
        """The number of the frame around the whole group."""
        return self.members[0][0]

    @property
    def seconds(self) -> int:
        """Time for everything inside."""
        return ENTER_SECONDS + sum(
            seconds(item.source) + 2 * shell.KILL_AFTER for _, item in self.members if _timed(item)
        )


@dataclass(frozen=True, slots=True)
class _Form:
    """How a script is to be written."""

    become: Become
    allow_init: bool


def render(
    items: Sequence[Item], *, nonce: str, tag: str, become: Become = Become.NONE, allow_init: bool = False
) -> str:
    """The script that reads the items, numbered by their place, and frames what it finds.

    `nonce` and `tag` are different random words of letters and digits. With `allow_init` commands that can load
    modules or create nodes run also where the driver is not up.
    """
    body = list(_body(arrange(items), nonce, _Form(become, allow_init)))
    watch = [shell.WATCH]
    return _whole(nonce, f"T={tag}.\n", watch, body, shell.CLOSE)


def arrange(items: Sequence[Item]) -> tuple[tuple[int, Item] | Group, ...]:
    """The items in their order; those inside one container together, where the first of them stands."""
    inside: dict[str, list[tuple[int, Item]]] = {}
    for number, item in enumerate(items):
        if item.enter is not None:
            inside.setdefault(item.enter, []).append((number, item))
    pieces: list[tuple[int, Item] | Group] = []
    for number, item in enumerate(items):
        if item.enter is None:
            pieces.append((number, item))
        elif inside[item.enter][0][0] == number:
            pieces.append(Group(item.enter, tuple(inside[item.enter])))
    return tuple(pieces)


def inner_nonce(nonce: str, number: int) -> str:
    """The nonce of a group's own script. Who knows it learns nothing about the outer one."""
    return hashlib.sha256(f"{nonce} {number}".encode()).hexdigest()[:32]


def command(become: Become) -> str:
    """The command line that takes the script on its standard input; valid in every login shell."""
    return "sudo -n sh -s" if become is Become.SUDO else "sh -s"


def seconds(source: Source) -> int:
    """The time-out of a source on the target, in whole seconds (old `sleep` knows no others)."""
    return max(1, math.ceil(source.timeout)) if isinstance(source, Command | Script) else SUDO_SECONDS


def _timed(item: Item) -> bool:
    return isinstance(item.source, Command | Script)


def _whole(nonce: str, tag: str, watch: list[str], body: list[str], close: str) -> str:
    text = "".join(body)
    used = [code for name, code in _OPTIONAL.items() if f"{name} " in text]
    first = [
        f"{CALL}() {{ # {nonce}\n",
        shell.SETUP,
        f"N=$1\n{tag}",
        shell.FRAME,
        shell.SWEEP,
        *watch,
        shell.FILE,
        *used,
    ]
    return "".join((*first, "_time; U=$u\n", text, close, shell.FINISH, "}\n", f"{CALL} {nonce}\n"))


_OPTIONAL = {
    "_line": shell.LINE,
    "_grep": shell.GREP,
    "_run": shell.RUN,
    "_cut": shell.CUT,
    "_enter": shell.ENTER,
    "_root": shell.ROOT,
    "_gpu": shell.GPU,
}


def _body(pieces: Sequence[tuple[int, Item] | Group], nonce: str, form: _Form) -> Iterator[str]:
    bound: Binding | None = None
    for piece in pieces:
        if isinstance(piece, Group):
            yield from _group(piece, nonce, form)
            continue
        number, item = piece
        if isinstance(item.source, Script) and item.binding != bound:
            bound = item.binding
            yield _variables(bound)
        yield comment(number, item)
        yield _call(number, item, form)


def comment(number: int, item: Item) -> str:
    """The line by which a replay server knows the item."""
    key = item.source.key.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"#: {number} {quote(item.target, safe='/@:+')} {key}\n"


def _group(group: Group, nonce: str, form: _Form) -> Iterator[str]:
    inner = inner_nonce(nonce, group.number)
    items = [(number, Item(item.target, item.source, item.binding)) for number, item in group.members]
    body = [line for line in _body(items, inner, _Form(Become.NONE, form.allow_init)) if not line.startswith("#: ")]
    nested = _whole(inner, "", [shell.INHERIT], body, "")
    yield f"#( {group.number} {inner}\n"
    yield from (comment(number, item) for number, item in group.members)
    yield "#)\n"
    yield f"S={word(nested)}\n"
    yield f"_root {group.number} && _run {group.number} {group.seconds} _enter {word(group.container)}\n"


def _variables(binding: Binding | None) -> str:
    if binding is None:
        return "unset CT INIT CONFIG CGROUP\n"
    names = {"CT": binding.ct, "INIT": binding.init, "CONFIG": binding.config, "CGROUP": binding.cgroup}
    return "export " + " ".join(f"{name}={word(value)}" for name, value in names.items()) + "\n"


def _call(number: int, item: Item, form: _Form) -> str:
    source, binding = item.source, item.binding
    if source.root and form.become is Become.SUDO_READS:
        gate, argv = _gate(number, source, form, root=False), " ".join(map(word, sudo_argv(source, binding)))
        return f"{gate}_run {number} {_sudo_wait(source)} {_cut(source)}{argv}\n"
    return f"{_gate(number, source, form, root=source.root)}{_reader(number, source, binding)}\n"


def _gate(number: int, source: Source, form: _Form, *, root: bool) -> str:
    gates = f"_root {number} && " if root else ""
    if isinstance(source, Command) and source.wakes_gpu and not form.allow_init:
        gates += f"_gpu {number} && "
    return gates


def _reader(number: int, source: Source, binding: Binding | None) -> str:
    match source:
        case File(path=path):
            how = "_line" if one_line(path) else "_file"
            return f"{how} {number} {source.limit + 1} {word(path, binding)}"
        case Glob(pattern=pattern):
            if all(one.startswith(("/sys/", "/proc/sys/")) for one in pattern.split()):
                return f"_do {number} {_cut(source)}grep -aH '' -- {patterns(pattern, binding)}"
            return f"_grep {number} {patterns(pattern, binding)}"
        case Stat(patterns=several):
            return f"_do {number} {_cut(source)}stat -c '{STAT_FORMAT}' -- {patterns(several, binding)}"
        case Command(argv=argv):
            words = " ".join(word(argument, binding) for argument in argv)
            return f"_run {number} {seconds(source)} {_cut(source)}{words}"
        case Script(text=text):
            return f"_run {number} {seconds(source)} {_cut(source)}sh -c {word(text)}"


def _cut(source: Source) -> str:
    return f"_cut {source.limit + 1} " if source.limit > BIG else ""


def one_line(path: str) -> bool:
    """Whether the kernel gives text there, most likely one line. It only decides how the file is read."""
    if not path.startswith(_ONE_LINE_TREES):
        return path in {"/proc/cmdline", "/proc/loadavg", "/proc/version"}
    return path.rpartition("/")[2] not in _BINARY_NAMES and not any(part in path for part in _BINARY_PARTS)


def sudo_argv(source: Source, binding: Binding | None) -> tuple[str, ...]:
    """The exact command that reads a single source as root.

    It starts with `timeout` because only root can end it. Patterns are expanded by a shell that runs as root (the
    user may not be able to list the directory), and the whole text of that shell is what sudo is told to allow:
    a wildcard in sudoers would also match blanks and further arguments (sudoers(5), "Wildcards").
    """
    head = ("sudo", "-n", "timeout", "-k", str(shell.KILL_AFTER), str(seconds(source)))
    match source:
        case File(path=path):
            return (*head, "cat", "--", fill(path, binding))
        case Glob(pattern=pattern):
            return (*head, "sh", "-c", f"exec grep -aH '' -- {_words(pattern, binding)}")
        case Stat(patterns=several):
            return (*head, "sh", "-c", f"exec stat -c '{STAT_FORMAT}' -- {_words(several, binding)}")
        case Command(argv=argv):
            return (*head, *(fill(argument, binding) for argument in argv))
        case Script():
            return ()


def _words(pattern: str, binding: Binding | None) -> str:
    """Patterns quoted only where it is needed, so that the sudoers file stays readable."""
    plain = " ".join(paths(pattern, binding))
    return plain if not set(plain) - _PLAIN else patterns(pattern, binding)


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@*? ")


def longest(piece: tuple[int, Item] | Group, become: Become) -> float | None:
    """After how many seconds the target itself gives the piece up; None where it has no time-out of its own."""
    if isinstance(piece, Group):
        return piece.seconds + 2 * shell.KILL_AFTER
    source = piece[1].source
    if source.root and become is Become.SUDO_READS:
        return _sudo_wait(source) + 2 * shell.KILL_AFTER
    return seconds(source) + 2 * shell.KILL_AFTER if _timed(piece[1]) else None


def _sudo_wait(source: Source) -> int:
    """Sudo's child cannot be signalled by us, so its own time-out goes first."""
    return seconds(source) + shell.KILL_AFTER + 1
