"""From a playbook's name or path to the playbook, with everything that it extends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from gapline.orchestrator.model.errors import ConfigError
from gapline.orchestrator.model.finding import Severity
from gapline.orchestrator.model.limit import Limit, Limits
from gapline.orchestrator.playbook.chapter import AgentPart, Chapter, Extends, FailOn, PlacedLimit, read_chapter
from gapline.orchestrator.playbook.playbook import AgentEntry, Level, Playbook
from gapline.orchestrator.yaml_document import load as document
from gapline.orchestrator.yaml_document.faults import Faults, did_you_mean

_SUFFIXES = (".yaml", ".yml")
_RUNS = (Level.QUICK, Level.FULL)
_FAIL_ON = FailOn(Severity.HIGH)


def shipped() -> Mapping[str, Path]:
    """The playbooks that come with Gapline, by name."""
    found = (Path(str(entry)) for entry in files("gapline.playbooks").iterdir() if entry.name.endswith(_SUFFIXES))
    return {path.stem: path for path in sorted(found)}


def load(name_or_path: str) -> Playbook:
    """A shipped playbook by its name, or a playbook file by its path.

    Raises:
        ConfigError: there is none, or it or one that it extends holds faults; all of them, each with its place.
    """
    faults = Faults()
    chapters = _chapters(_find(name_or_path, Path()), faults)
    entries = _entries(chapters, faults)
    faults.stop_if_any()
    top = chapters[0]
    fail_on = next((chapter.fail_on for chapter in chapters if chapter.fail_on), _FAIL_ON)
    runs = next((chapter.runs for chapter in chapters if chapter.runs), _RUNS)
    return Playbook(name=top.name, about=top.about, runs=runs, fail_on=fail_on.severity, entries=entries)


def _find(wanted: str, folder: Path) -> Path:
    """The path of a playbook; a bare word is a shipped one, anything else a file seen from the folder."""
    if "/" in wanted or wanted.endswith(_SUFFIXES):
        return folder / wanted
    known = shipped()
    if wanted not in known:
        hint = f"{did_you_mean(wanted, known)} A file of your own is given by its path, ending in .yaml."
        raise ConfigError(f"no playbook is called {wanted!r}", hint=hint.strip())
    return known[wanted]


def _chapters(path: Path, faults: Faults) -> Sequence[Chapter]:
    """The file and what it extends, the nearest first.

    Raises:
        ConfigError: one of them cannot be read, or extends itself in the end.
    """
    chapters = [read_chapter(document.parse(document.read(path), path, faults), faults)]
    passed = [path]
    while (extends := chapters[-1].extends) is not None:
        try:
            path, data = _below(extends, passed)
        except ConfigError as error:
            raise faults.ending_with(error) from error
        chapters.append(read_chapter(document.parse(data, path, faults), faults))
        passed.append(path)
    return chapters


def _below(extends: Extends, passed: Sequence[Path]) -> tuple[Path, bytes]:
    """The file that is extended, and what is in it."""
    try:
        path = _find(extends.wanted, passed[-1].parent)
        data = document.read(path)
    except ConfigError as error:
        raise extends.place.fault(str(error), error.hint) from error
    if any(path.samefile(before) for before in passed):
        way = " → ".join(before.name for before in (*passed, path))
        raise extends.place.fault(f"the playbook extends itself: {way}")
    return path, data


def _entries(chapters: Sequence[Chapter], faults: Faults) -> dict[str, AgentEntry]:
    """Every agent that a chapter names, the lowest chapter first, so that overlays win."""
    parts: dict[str, AgentPart] = {}
    for chapter in reversed(chapters):
        below = dict(parts)
        for id_, part in chapter.agents.items():
            parts[id_] = _over(below[id_], part, faults) if id_ in below else part
            if parts[id_].level is None:
                others = did_you_mean(id_, below)
                faults.add(part.place.fault(f"agent {id_} has no level", others or f"Levels: {', '.join(Level)}."))
    return {id_: _entry(part) for id_, part in parts.items()}


def _over(below: AgentPart, part: AgentPart, faults: Faults) -> AgentPart:
    for name, placed in part.limits.items():
        if name in below.limits:
            _check_kind(name, below.limits[name], placed, faults)
    return AgentPart(
        place=part.place,
        level=part.level or below.level,
        enabled=below.enabled if part.enabled is None else part.enabled,
        limits={**below.limits, **part.limits},
    )


def _check_kind(name: str, below: PlacedLimit, placed: PlacedLimit, faults: Faults) -> None:
    """A number stays a number: the agent that compares with it was written for that."""
    wanted, found = _kind(below.limit), _kind(placed.limit)
    if wanted != found:
        faults.add(placed.place.fault(f"limit {name} is {wanted} in {below.place.cited}, and {found} here"))


def _kind(limit: Limit) -> str:
    match limit.value:
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case _:
            return "words"


def _entry(part: AgentPart) -> AgentEntry:
    return AgentEntry(
        level=part.level or Level.FULL,
        enabled=part.enabled is not False,
        limits=Limits({name: placed.limit for name, placed in part.limits.items()}),
        place=part.place,
        limit_places={name: placed.place for name, placed in part.limits.items()},
    )
