"""What is known before anything is sent: items that cannot, or must not, be read in this way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Command, File, Glob, Script, Stat

if TYPE_CHECKING:
    from gapline.orchestrator.collect.item import Item
    from gapline.orchestrator.model.source import Source

_THROUGH_ROOT = re.compile(r"/proc/[^/]+/root/")
_STOPPED_NAMES = re.compile(r"\{(init|cgroup)\}|\$\{?(INIT|CGROUP)\b")


def refusal(item: Item, become: Become) -> Problem | None:
    """Why the item is not read at all, or None."""
    if (binding := item.binding) is not None:
        if (item.enter is not None and not binding.init) or (_needs_init(item.source) and not binding.init):
            return Problem(kind=ProblemKind.NOT_RUNNING, detail=f"container {binding.ct} is not running")
        if "{config}" in _text(item.source) and not binding.config:
            return Problem(kind=ProblemKind.MISSING, detail=f"container {binding.ct} has no configuration file")
    if isinstance(item.source, File | Glob) and _THROUGH_ROOT.search(_text(item.source)):
        return Problem(
            kind=ProblemKind.WITHHELD,
            detail="not read from the host: links that a container makes would lead to the host's own files",
            hint="Read it from inside (vantage `inside`).",
        )
    if become is Become.SUDO_READS and item.enter is not None:
        return _not_grantable("Entering a container")
    if become is Become.SUDO_READS and item.source.root and isinstance(item.source, Script):
        return _not_grantable(f"The script {item.source.name}")
    return None


def _needs_init(source: Source) -> bool:
    """Without an init there is no process and no cgroup; the path would name something else on the host."""
    return _STOPPED_NAMES.search(_text(source)) is not None


def _text(source: Source) -> str:
    match source:
        case File(path=path):
            return path
        case Glob(pattern=pattern):
            return pattern
        case Stat(patterns=several):
            return several
        case Command(argv=argv):
            return " ".join(argv)
        case Script(text=text):
            return text


def _not_grantable(what: str) -> Problem:
    return Problem(
        kind=ProblemKind.DENIED,
        detail=f"{what} needs root and cannot be granted as a single read",
        hint="Set `become: sudo` for this host, or log in as root, to see it.",
    )
