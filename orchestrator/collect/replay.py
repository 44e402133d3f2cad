"""What a target with given captures would have printed for a script: the far side of a lane, without a machine.

A script announces its items in comment lines; only those are read here. A script is complete when `ends` says so:
its first line ends with the nonce and its last line calls the function with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, unquote

from gapline.orchestrator.collect.script import CALL
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem

Lookup = Callable[[str, str], Capture | None]
"""The capture of a target and a source key, None when the snapshot has none."""

_FIRST = re.compile(rb"\A" + CALL.encode() + rb"\(\) \{ # ([0-9A-Za-z]+)\n")
_LINE = re.compile(
    rb"^#(?:: (?P<number>\d+) (?P<target>\S+) (?P<key>.*)|\( (?P<group>\d+) (?P<nonce>\w+)|(?P<end>\)))$", re.MULTILINE
)
_ESCAPES = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r"}
_LONGEST = 1000
"""Characters of a problem's text that are told; a marker line has a limit."""


def ends(script: bytes) -> bool:
    """Whether this is a whole script. Cheap enough to ask after every piece that arrives."""
    nonce = _FIRST.match(script)
    return nonce is not None and script.endswith(b"\n" + CALL.encode() + b" " + nonce.group(1) + b"\n")


def answer(script: bytes, lookup: Lookup) -> tuple[bytes, bytes]:
    """Standard output and standard error for a complete script; nothing for anything else."""
    first = _FIRST.match(script)
    if first is None:
        return b"", b""
    printed = _Printed(first.group(1))
    inner: tuple[bytes, _Printed] | None = None
    for line in _LINE.finditer(script):
        if line["group"]:
            inner = (line["group"], _Printed(line["nonce"]))
        elif line["number"]:
            target, key = unquote(line["target"].decode()), _unescaped(line["key"].decode())
            into = inner[1] if inner else printed
            into.item(line["number"], lookup(target, key) or absent(target, key))
        elif inner:
            printed.script(*inner)
            inner = None
    return printed.whole()


def absent(target: str, key: str) -> Capture:
    """What a target says about something that it does not have."""
    kind, _, what = key.removeprefix("inside:").partition(":")
    if kind == "command":
        return Capture(target, key, what, err=f"sh: {what.split(' ', 1)[0]}: not found\n".encode(), exit=127)
    return Capture(target, key, what, err=f"{kind}: '{what}': No such file or directory\n".encode(), exit=1)


class _Printed:
    """Both streams of one script."""

    def __init__(self, nonce: bytes) -> None:
        self._mark = b"\n@" + nonce + b" "
        self._out: list[bytes] = []
        self._err: list[bytes] = []

    def item(self, number: bytes, capture: Capture) -> None:
        status = b"%d" % (capture.exit or 0) if capture.exit is not None or capture.problem is None else b"-"
        flags = b"." + b"q" * (not capture.err) + b"t" * capture.truncated
        words = (b"e", number, status, b"0", b"%.3f" % capture.seconds, flags, *_told(capture.problem))
        self._add(self._out, (b"b", number), capture.out, words)
        if capture.err:
            self._add(self._err, (b"b", number), capture.err, (b"e", number))

    def script(self, number: bytes, inner: _Printed) -> None:
        out, err = inner.whole()
        self._add(self._out, (b"b", number), out, (b"e", number, b"0", b"0", b"0"))
        self._add(self._err, (b"b", number), err, (b"e", number))

    def whole(self) -> tuple[bytes, bytes]:
        end = self._mark + b"z\n"
        return b"".join((*self._out, end)), b"".join((*self._err, end))

    def _add(self, to: list[bytes], begin: Iterable[bytes], data: bytes, end: Iterable[bytes]) -> None:
        to += (self._mark, b" ".join(begin), b"\n", data, self._mark, b" ".join(end), b"\n")


def _told(problem: Problem | None) -> tuple[bytes, ...]:
    if problem is None:
        return ()
    short = Problem(kind=problem.kind, detail=problem.detail[:_LONGEST], hint=problem.hint[:_LONGEST])
    return (quote(short.model_dump_json(), safe="").encode(),)


def _unescaped(key: str) -> str:
    return _ESCAPES.sub(lambda match: _ESCAPED.get(match.group(1), match.group(1)), key)
