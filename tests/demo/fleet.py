"""Copies of the worked example's captures with something changed in them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from gapline.orchestrator.demo import FLEET


class Fleet:
    """A copy of one host that a test edits as bytes, as a person would with the files at hand."""

    def __init__(self, path: Path, host: str = "pve-b") -> None:
        self.path = path
        shutil.copytree(FLEET / host, path / host)
        manifest = json.loads((FLEET / "manifest.json").read_text())
        manifest["targets"] = [target for target in manifest["targets"] if target.partition("/")[0] == host]
        (path / "manifest.json").write_text(json.dumps(manifest))

    def replace(self, old: str, new: str, *, only: str = "*") -> None:
        """Put other bytes in the place of some, in all files of a name; they must be there."""
        changed = 0
        for file in self._files(only):
            before = file.read_bytes()
            after = before.replace(old.encode(), new.encode())
            changed += before != after
            file.write_bytes(after)
        assert changed, f"{old!r} is nowhere in {only}"

    def rename(self, old: str, new: str) -> None:
        """Give a container another name, in every file and as a folder."""
        self.replace(old, new)
        folder = next(self.path.glob(f"*/{old}"))
        folder.rename(folder.with_name(new))

    def drop(self, *words: str) -> None:
        """Take every line out that holds one of the words."""
        for file in self._files("*.txt"):
            kept = [line for line in file.read_text().splitlines(keepends=True) if not _holds(line, words)]
            file.write_text("".join(kept))

    def take_out(self, *bus_ids: str) -> None:
        """Remove GPUs: their elements in nvidia-smi's XML, and every line that names one of them."""
        elements = re.compile(rf'\t<gpu id="0000(?:{"|".join(bus_ids)})">.*?</gpu>\n', re.DOTALL)
        for file in self._files("*.txt"):
            file.write_text(elements.sub("", file.read_text()))
        self.drop(*bus_ids)

    def _files(self, name: str) -> list[Path]:
        return [file for file in self.path.rglob(name) if file.is_file()]


def _holds(line: str, words: Iterable[str]) -> bool:
    return any(word in line for word in words)
