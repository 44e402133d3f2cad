"""The user's ssh_config, read once per run and resolved per host by asyncssh's own parser.

asyncssh parses all of the file for every connection: 60 ms per host with a thousand of them, thirty times the handshake
(measured). Here the files are cut into blocks once, and its parser is given only the blocks that can concern a host.
"""

from __future__ import annotations

import functools
import getpass
import re
import shlex
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
from asyncssh.config import SSHClientConfig

from gapline.orchestrator.model.errors import ConfigError

_KEYWORD = re.compile(r"[\s=]")
_ERROR = re.compile(r"(?P<path>.*) line (?P<line>\d+): (?P<reason>.*)", re.DOTALL)
_HINT = "Correct the line; `ssh -G HOST` shows what OpenSSH makes of the file."
_ALWAYS = "Host *"
_MAX_DEPTH = 16  # as in OpenSSH's readconf.c


@dataclass(frozen=True, slots=True)
class ConfigLine:
    """One setting and its place."""

    path: Path
    number: int
    text: str

    @property
    def keyword(self) -> str:
        """What is set, in lower case."""
        return _KEYWORD.split(self.text, maxsplit=1)[0].lower()

    @property
    def value(self) -> str:
        """What it is set to."""
        return self.text[len(self.keyword) :].strip(" \t=")


@dataclass(slots=True)
class Block:
    """Lines under one `Host` or `Match`. `only_for` are its host names when it names nothing but plain names."""

    head: str
    only_for: frozenset[str] | None = None
    lines: list[ConfigLine] = field(default_factory=list)


@functools.cache
def local_user() -> str:
    """Who runs this; looked up once, since it can cost a question to a directory server."""
    return getpass.getuser()


class UserConfig:
    """The files as blocks, and what they mean for a host."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self._paths = tuple(path for path in (path.expanduser() for path in paths) if path.is_file())
        self._blocks: list[Block] = []
        self._named: defaultdict[str, list[int]] = defaultdict(list)
        self._resolved: dict[tuple[str, str | None, int | None], SSHClientConfig] = {}
        for path in self._paths:
            self._read(path, path.parent, depth=0)
        for index, block in enumerate(self._blocks):
            for name in block.only_for or ():
                self._named[name].append(index)
        self._general = [index for index, block in enumerate(self._blocks) if block.only_for is None]

    def blocks(self, name: str) -> tuple[Block, ...]:
        """The blocks that can concern this host, in their order; `Host` patterns and `Match` are still to be judged."""
        return tuple(self._blocks[index] for index in sorted((*self._general, *self._named.get(name, ()))))

    def resolve(self, name: str, user: str | None, port: int | None) -> SSHClientConfig:
        """What the files say about a host. `user` and `port` are given when something stronger sets them.

        Raises:
            ConfigError: a file holds something that its parser does not take.
        """
        key = (name, user, port)
        if key not in self._resolved:
            self._resolved[key] = self._parse(name, user, port)
        return self._resolved[key]

    def _parse(self, name: str, user: str | None, port: int | None) -> SSHClientConfig:
        blocks = [block for block in self.blocks(name) if block.lines]
        text = "\n".join(line for block in blocks for line in (block.head, *(item.text for item in block.lines)))
        if not text:
            return _load((), name, user, port)
        with tempfile.NamedTemporaryFile("w", prefix="gapline-", suffix=".ssh_config", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            try:
                return _load((Path(file.name),), name, user, port)
            except (asyncssh.ConfigParseError, UnicodeDecodeError) as error:
                raise self._fault(name, user, port, error) from error

    def _fault(self, name: str, user: str | None, port: int | None, error: ValueError) -> ConfigError:
        """The error with its place in the user's own file, which the short text that was parsed does not have."""
        try:
            _load(self._paths, name, user, port)
        except ValueError as original:
            error = original
        place = _ERROR.fullmatch(str(error))
        if place is None:
            return ConfigError(str(error), hint=_HINT)
        return ConfigError(place["reason"], path=place["path"], line=int(place["line"]), hint=_HINT)

    def _read(self, path: Path, base: Path, *, depth: int) -> None:
        block = self._start(_ALWAYS)
        for number, raw in enumerate(path.read_text(encoding="utf-8", errors="surrogateescape").splitlines(), 1):
            text = raw.strip()
            if not text or text.startswith("#"):
                continue
            line = ConfigLine(path, number, text)
            if line.keyword in {"host", "match"}:
                block = self._start(text, _plain_names(line))
            elif line.keyword != "include":
                block.lines.append(line)
            elif block.head == _ALWAYS and depth < _MAX_DEPTH:
                for included in _included(line, base):
                    self._read(included, base, depth=depth + 1)
                block = self._start(_ALWAYS)
            else:
                block.lines.extend(ConfigLine(path, number, f'Include "{file}"') for file in _included(line, base))

    def _start(self, head: str, only_for: frozenset[str] | None = None) -> Block:
        block = Block(head, only_for)
        self._blocks.append(block)
        return block


def _load(paths: tuple[Path, ...], name: str, user: str | None, port: int | None) -> SSHClientConfig:
    config = _pass(paths, name, user, port)
    if config.has_match_final():
        return _pass(paths, str(config.get("Hostname", name)), user, port, before=config)
    return config


def _pass(
    paths: tuple[Path, ...], name: str, user: str | None, port: int | None, *, before: SSHClientConfig | None = None
) -> SSHClientConfig:
    """One pass of the parser; a `Match final` needs a second one, which knows the first (ssh_config(5), Match)."""
    final = before is not None
    who = (local_user(), user or (), name, port or ())
    config = SSHClientConfig.load(before, list(paths), final, False, final, *who)  # noqa: FBT003 - its signature
    assert isinstance(config, SSHClientConfig)  # noqa: S101 - `load` is declared on its base class
    return config


def _plain_names(line: ConfigLine) -> frozenset[str] | None:
    """The names of a `Host` line without patterns; None for everything that has to be judged by the parser."""
    if line.keyword != "host" or any(sign in line.value for sign in "*?!,\"'\\"):
        return None
    return frozenset(line.value.split())


def _included(line: ConfigLine, base: Path) -> list[Path]:
    """The files an `Include` names. Relative ones lie beside the file at the root: ~/.ssh or /etc/ssh."""
    found: list[Path] = []
    try:
        patterns = shlex.split(line.value)
    except ValueError as error:
        raise ConfigError(str(error), path=line.path, line=line.number, hint=_HINT) from error
    for pattern in patterns:
        path = base / Path(pattern).expanduser()
        matches = Path(path.anchor).glob(str(path.relative_to(path.anchor)))
        found.extend(sorted(file for file in matches if file.is_file()))
    return found
