"""The wheel holds the four folders under `gapline`, and nothing of ours goes by a bare name."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("agents", "orchestrator", "playbooks", "reports")
BUILD = """
import os, shutil, sys
from hatchling import build
os.mkdir(sys.argv[1])
source = build.build_sdist(sys.argv[1])
os.chdir(sys.argv[1])
shutil.unpack_archive(source)
os.chdir(source.removesuffix(".tar.gz"))
print(build.build_wheel(".."))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names in a wheel that was built from the source distribution, as an index's users get it."""
    out = tmp_path_factory.mktemp("wheel") / "dist"
    built = subprocess.run(
        [sys.executable, "-c", BUILD, out], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()[-1]
    return zipfile.ZipFile(out / built).namelist()


def test_wheel_holds_every_tracked_file(wheel: list[str]) -> None:
    """Hatchling skips a linked folder that it has already seen; a lost file must not go unnoticed."""
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout.split("\n")
    expected = {f"gapline/{name}" for name in tracked if name and (ROOT / name).is_file()}
    expected |= {f"gapline/{name}" for name in ("__init__.py", "__main__.py", "py.typed")}
    assert {name for name in wheel if ".dist-info/" not in name} == expected


def test_wheel_owns_one_top_level_name(wheel: list[str]) -> None:
    """A second one, such as `agents`, would overwrite the package of another project."""
    assert {name.split("/")[0].partition("-")[0] for name in wheel} == {"gapline"}


def test_bare_names_are_no_modules() -> None:
    """With the repository's root on the path `import agents` works, and makes every class a second time."""
    everything = "\n".join(
        [
            "import importlib, pkgutil, sys, gapline",
            "for module in pkgutil.walk_packages(gapline.__path__, 'gapline.'):",
            "    module.name == 'gapline.__main__' or importlib.import_module(module.name)",
            f"print(*set(sys.modules) & {set(FOLDERS)!r})",
        ]
    )
    found = subprocess.run([sys.executable, "-c", everything], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    assert found.stdout.split() == []
