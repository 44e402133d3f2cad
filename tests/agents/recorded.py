"""Captures from the files of a case.

What a source printed stands in a file with the name that the agent gave the source; it has no file where the thing
itself is absent. Beside it can stand ``NAME.exit`` (exit status) and ``NAME.err`` (standard error), from which the
collector's own diagnosis makes the problem, or ``NAME.problem`` (a Problem as JSON) for everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gapline.orchestrator.collect.diagnose import diagnose
from gapline.orchestrator.collect.fill import shown
from gapline.orchestrator.collect.frames import Frame
from gapline.orchestrator.collect.item import Binding, Item
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Source

HOST = "pve-t"
CONTAINER = "pve-t/129"
BINDING = Binding(ct="129", init="4211", config="/etc/pve/lxc/129.conf", cgroup="/lxc/129")


def captures(
    folder: Path, sources: Mapping[str, Source], target: str, binding: Binding | None, patched: Mapping[str, bytes]
) -> Captures:
    """All captures of one agent. `patched` stands for what files hold after a remedy, by their shown source."""
    read = {
        name: capture(_state(folder, name, patched), name, source, target, binding) for name, source in sources.items()
    }
    return Captures({name: _after(one, patched) for name, one in read.items()})


def _state(folder: Path, name: str, patched: Mapping[str, bytes]) -> Path:
    """`after` holds what a source gives when the repaired file is in force: what a restart of the container changes."""
    after = folder / "after"
    return after if patched and (after / name).is_file() else folder


def capture(folder: Path, name: str, source: Source, target: str, binding: Binding | None) -> Capture:
    """What one source gave."""
    out, err = _bytes(folder / name), _bytes(folder / f"{name}.err")
    return Capture(
        target=target,
        source=source.key,
        shown=shown(Item(target, source, binding)),
        out=out or b"",
        err=err or b"",
        exit=0,
        problem=_problem(folder, name, source, out, err),
    )


def _problem(folder: Path, name: str, source: Source, out: bytes | None, err: bytes | None) -> Problem | None:
    told, status = _bytes(folder / f"{name}.problem"), _bytes(folder / f"{name}.exit")
    if told is not None:
        return Problem.model_validate_json(told)
    if status is not None:
        frame = Frame(0, out or b"", err or b"", status.decode().strip(), 0.01, truncated=False)
        return diagnose(source, frame)
    if out is None:
        return Problem(kind=ProblemKind.MISSING, detail="No such file or directory")
    return None


def _after(one: Capture, patched: Mapping[str, bytes]) -> Capture:
    new = next((content for path, content in patched.items() if one.shown.split()[-1] == path), None)
    return one if new is None else replace(one, out=new, problem=None)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
