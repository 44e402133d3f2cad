"""From items to one POSIX `sh` script for `sh -s`. Pure: the same items give the same script.

The whole script is one function and its last line calls it, so a script that arrives cut off runs nothing. The first
line ends with the nonce and the last line is ``_m <nonce>``: by that a reader knows the end of a script. Every item
has a comment line ``#: <number> <target> <key>`` before it; a replay server knows it by that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from urllib.parse import quote

from gapline.orchestrator.collect import shell
from gapline.orchestrator.collect.fill import word
from gapline.orchestrator.collect.group import Batch, Group, Piece, arrange, inner_nonce
from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.collect.reader import batch, call, evaluate
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.source import Script

CALL = "_m"
"""Name of the function around everything. The script ends with a line of this name and the nonce."""


def render(
    items: Sequence[Item], *, nonce: str, tag: str, become: Become = Become.NONE, allow_init: bool = False
) -> str:
    """The script that reads the items, numbered by their place, and frames what it finds; see `assemble`."""
    return assemble(arrange(items, become), nonce=nonce, tag=tag, become=become, allow_init=allow_init)


def assemble(pieces: Sequence[Piece], *, nonce: str, tag: str, become: Become, allow_init: bool) -> str:
    """The script that reads the pieces.

    `nonce` and `tag` are different random words of letters and digits. With `allow_init` commands that can load
    modules or create nodes run also where the driver is not up.
    """
    body = "".join(_body(pieces, nonce, become, allow_init=allow_init))
    return _whole(nonce, f"T={tag}.\n{shell.SWEEP}{shell.WATCH}", body, shell.CLOSE + shell.FINISH)


def command(become: Become) -> str:
    """The command line that takes the script on its standard input; valid in every login shell."""
    return "sudo -n sh -s" if become is Become.SUDO else "sh -s"


def _whole(nonce: str, start: str, body: str, end: str) -> str:
    used = (code for name, code in _OPTIONAL.items() if f"{name} " in body)
    parts = (
        f"{CALL}() {{ # {nonce}\n",
        shell.SETUP,
        "N=$1\n",
        shell.FRAME,
        start,
        shell.DO,
        *used,
        "_time; U=$u\n",
        body,
        end,
        "}\n",
        f"{CALL} {nonce}\n",
    )
    return "".join(parts)


_OPTIONAL = {
    "_file": shell.FILE,
    "_grep": shell.GREP,
    "_run": shell.RUN,
    "_eval": shell.EVAL,
    "_cut": shell.CUT,
    "_enter": shell.ENTER,
    "_root": shell.ROOT,
    "_gpu": shell.GPU,
}


def _body(
    pieces: Sequence[Piece], nonce: str, become: Become, *, allow_init: bool, shared: bool = False
) -> Iterator[str]:
    bound: Binding | None = None
    for piece in pieces:
        if isinstance(piece, Group):
            yield from _group(piece, nonce, allow_init=allow_init)
            continue
        if isinstance(piece, Batch):
            yield from (comment(number, item) for number, item in piece.members)
            yield batch(piece.number, piece.members)
            continue
        number, item = piece
        if isinstance(item.source, Script) and item.binding != bound:
            bound = item.binding
            yield _variables(bound)
        yield comment(number, item)
        yield evaluate(number, item) if shared else call(number, item, become, allow_init=allow_init)


def comment(number: int, item: Item) -> str:
    """The line by which a replay server knows the item."""
    return f"#: {number} {_one_word(item.target)} {_one_line(item.source.key)}\n"


@lru_cache(maxsize=256)
def _one_word(target: str) -> str:
    return quote(target, safe="/@:+")


@lru_cache(maxsize=4096)
def _one_line(key: str) -> str:
    return key.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _group(group: Group, nonce: str, *, allow_init: bool) -> Iterator[str]:
    inner = inner_nonce(nonce, group.number)
    shared = not group.container
    body = _body(group.pieces, inner, Become.NONE, allow_init=allow_init, shared=shared)
    lines = (line for line in body if not line.startswith("#: "))
    yield f"#( {group.number} {inner}\n"
    yield from (comment(number, item) for number, item in group.members)
    yield "#)\n"
    if shared:
        whole = word(_whole(inner, shell.INHERIT, "".join(lines), shell.FINISH_SHARED))
        root = f"_root {group.number} && " if group.root else ""
        yield f"{root}_run {group.number} {group.seconds} sh -c {whole}\n"
    else:
        whole = word(_whole(inner, shell.INHERIT + shell.SWEEP, "".join(lines), shell.FINISH))
        yield f"S={whole}\n"
        yield f"_root {group.number} && _run {group.number} {group.seconds} _enter {word(group.container)}\n"


def _variables(binding: Binding | None) -> str:
    if binding is None:
        return "unset CT INIT CONFIG CGROUP\n"
    names = {"CT": binding.ct, "INIT": binding.init, "CONFIG": binding.config, "CGROUP": binding.cgroup}
    return "export " + " ".join(f"{name}={word(value)}" for name, value in names.items()) + "\n"
