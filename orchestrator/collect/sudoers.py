"""The sudoers file that allows exactly the single root reads of a plan, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gapline.orchestrator.collect.item import Item
from gapline.orchestrator.collect.reader import sudo_argv
from gapline.orchestrator.collect.refusal import refusal
from gapline.orchestrator.inventory.host import Become

SECURE_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

# sudoers(5), "Special characters": these end or separate a command unless escaped, or are wildcards. A wildcard would
# also match blanks and further arguments, so every one of ours is made literal. A blank within an argument is escaped
# because several in a row would count as one; at the end of a line it cannot stand at all. `$` and quotes stand for
# themselves and cannot be escaped. A backslash is unescaped twice: by the parser, and as a pattern (tried with 1.9.13).
_SPECIAL = re.compile(r"([,:=#*?\[\]!^ ])")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]| \Z")
"""What no line can name; such a read is not granted."""

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\$?")


def sudoers(items: Iterable[Item], user: str) -> str:
    """Lines for a file in /etc/sudoers.d. Empty when nothing needs root.

    `env_reset` and `secure_path` are set for the user, because the granted `timeout` looks up its command by PATH.

    Raises:
        ValueError: the user's name cannot stand in a sudoers file.
    """
    if user == "ALL" or not _USER.fullmatch(user):
        raise ValueError(f"{user!r} is no user name that sudoers takes")
    lines = sorted(set(_grants(items, user)))
    if not lines:
        return ""
    defaults = f'Defaults:{user} env_reset, secure_path="{SECURE_PATH}"'
    return "\n".join((defaults, *lines, ""))


def _grants(items: Iterable[Item], user: str) -> Iterator[str]:
    for item in items:
        if not item.source.root or item.enter is not None or refusal(item, Become.SUDO_READS) is not None:
            continue
        _, _, program, *arguments = sudo_argv(item.source, item.binding)
        line = " ".join((f"/usr/bin/{program}", *map(_literal, arguments)))
        if not _UNSAFE.search(line):
            yield f"{user} ALL=(root) NOPASSWD: {line}"


def _literal(argument: str) -> str:
    return _SPECIAL.sub(r"\\\1", argument.replace("\\", r"\\\\"))
