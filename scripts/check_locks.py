"""Checks, offline, that requirements/*.txt fit pyproject.toml: `scripts/lint` calls it, `scripts/lock` mends it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
ENTRY = re.compile(
    r"""^(?P<pin>[^\s\#-][^\\\#\n]*?)\ *\\\n   # name==version ; marker
        (?:\ +--hash=\S+(?:\ \\)?\n)+         # at least one hash
        \ +\#\ via\ (?P<via>.*)$               # who asked for it""",
    re.MULTILINE | re.VERBOSE,
)


def main() -> int:
    """Print every fault; 1 when there is one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    runtime = tuple(map(Requirement, project["project"]["dependencies"]))
    alone = {name: group(groups, name) for name in ("bench", "build")}
    wanted = {"runtime": runtime, "dev": runtime + group(groups, "dev"), **alone}
    faults = [
        f"requirements/{name}.txt: {fault}"
        for name, requirements in wanted.items()
        for fault in compare(requirements, (ROOT / f"requirements/{name}.txt").read_text())
    ]
    if set(project["build-system"]["requires"]) != set(groups["build"]):
        faults.append("pyproject.toml: build-system.requires and the dependency group `build` differ")
    sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


def group(groups: dict[str, list[Any]], name: str) -> tuple[Requirement, ...]:
    """A dependency group with the groups it includes."""
    found: list[Requirement] = []
    for entry in groups[name]:
        found += group(groups, entry["include-group"]) if isinstance(entry, dict) else [Requirement(entry)]
    return tuple(found)


def compare(requirements: tuple[Requirement, ...], lock: str) -> list[str]:
    """What is missing in a lock, too old in it, there without need, or tells where it was made."""
    pins = {}
    direct = set()
    for entry in ENTRY.finditer(lock):
        pin = Requirement(entry["pin"])
        pins[canonicalize_name(pin.name)] = str(pin.specifier).removeprefix("==")
        if "gapline (pyproject.toml" in entry["via"]:
            direct.add(canonicalize_name(pin.name))
    faults = [f"{url} names a host" for url in re.findall(r"\w+://\S+", lock)]
    if len(pins) != len(re.findall(r"^[^\s#]", lock, re.MULTILINE)):
        faults.append("has lines other than hashed pins")
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        if name not in pins:
            faults.append(f"{requirement} is missing: run scripts/lock")
        elif not requirement.specifier.contains(pins[name], prereleases=True):
            faults.append(f"{name}=={pins[name]} is not {requirement}: run scripts/lock")
        direct.discard(name)
    return faults + [f"{name} is no longer asked for: run scripts/lock" for name in sorted(direct)]


if __name__ == "__main__":
    sys.exit(main())
