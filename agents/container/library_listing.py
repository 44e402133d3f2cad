"""The NVIDIA driver's user-space libraries in a container: copies, links, and what the loader's cache names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.container.mapped_libraries import MappedLibrary
from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script, Vantage

LIBRARIES = Script(
    name="driver-libraries",
    vantage=Vantage.INSIDE,
    timeout=15,
    # Inside, because a link of the container that is followed from outside would lead into the host.
    text=r"""
LC_ALL=C; export LC_ALL
seen=:
for d in /usr/lib/*-linux-gnu* /usr/lib /usr/lib64 /lib/*-linux-gnu* /lib /lib64 /usr/local/lib /usr/local/lib64 \
  /usr/lib/*/nvidia /usr/lib/*/nvidia/current /usr/lib/nvidia* /usr/local/nvidia/lib /usr/local/nvidia/lib64 \
  /usr/lib/wsl/lib /run/opengl-driver/lib /usr/local/cuda*/compat /usr/local/cuda*/lib64/stubs \
  /usr/local/cuda*/targets/*/lib/stubs /usr/local/cuda*/compat/lib /usr/local/cuda*/compat/lib.real \
  /opt/conda/lib /opt/conda/cuda-compat /opt/venv/lib /opt/nvidia/lib /opt/nvidia/lib64
do
  [ -d "$d" ] || continue
  r=$(cd "$d" 2>/dev/null && pwd -P) || continue
  case $seen in *":$r:"*) continue ;; esac
  seen=$seen$r:
  for f in "$r"/libcuda.so* "$r"/libnvidia-ml.so* "$r"/libnvidia-ptxjitcompiler.so*; do
    if [ -L "$f" ] && [ ! -e "$f" ]; then printf 'dead|%s|%s\n' "$f" "$(readlink "$f")"
    elif [ -L "$f" ]; then printf 'link|%s|%s\n' "$f" "$(readlink -f "$f")"
    elif [ -s "$f" ]; then printf 'file|%s|\n' "$f"
    elif [ -f "$f" ]; then printf 'empty|%s|\n' "$f"
    fi
  done
done
if command -v ldconfig >/dev/null 2>&1; then
  ldconfig -p 2>/dev/null | while read -r n k; do
    case $n in libcuda.so.1|libnvidia-ml.so.1|libnvidia-ptxjitcompiler.so.1)
      printf 'cache|%s|%s|%s\n' "$n" "$k" "$(readlink -f "${k##* }")" ;;
    esac
  done
fi
echo end
""",
)

COMPAT = re.compile(r"/usr/local/cuda[^/]*/compat/.*|.*/cuda-compat/.*")
STUBS = re.compile(r".*/stubs/.*")
_LIBRARY = r"lib(?:cuda|nvidia-ml|nvidia-ptxjitcompiler)\.so"
_NAMED = re.compile(rf"/(?:[^/|]*/)*({_LIBRARY})(?:\.(\d{{2,4}}\.\d{{1,4}}(?:\.\d{{1,4}})?))?(?:\.1)?")
_FILE = re.compile(r"(file|empty|link|dead)\|(/[^|]*)\|([^|]*)")
_CACHE = re.compile(rf"cache\|({_LIBRARY}\.1)\|\(([^)]*)\) => ([^|]*)\|([^|]*)")


class Library(Fact):
    """A file, or a link with what it leads to in the end. `version` comes from the real file's name."""

    name: str  # libcuda.so, libnvidia-ml.so, libnvidia-ptxjitcompiler.so
    path: str
    target: str  # of a link; empty for a file
    version: str | None
    empty: bool  # a file without content, as image builders leave them
    dead: bool  # a link to nothing
    evidence: Evidence

    @property
    def is_soname(self) -> bool:
        """The name that programs load."""
        return self.path.endswith(".so.1")


class CacheEntry(Fact):
    """What the loader's cache gives for a name; the first entry of an architecture wins."""

    name: str  # libcuda.so.1, …
    kind: str  # "libc6,x86-64"
    path: str
    version: str | None
    evidence: Evidence


class DriverLibraries(Fact):
    """All copies and links in the usual folders, and the loader's cache in its order."""

    files: tuple[Library, ...]
    cache: tuple[CacheEntry, ...]
    end: Evidence  # the last line: the search was complete
    mapped: tuple[MappedLibrary, ...] = ()  # by CUDA processes; none run, or they could not be seen

    def copies(self, name: str) -> tuple[Library, ...]:
        """Real, versioned files of a library, without compatibility packages and stubs."""
        return tuple(
            f for f in self.files if f.name == name and not f.target and not f.empty and f.version and not aside(f.path)
        )

    def loaded(self, name: str) -> CacheEntry | Library | None:
        """What a 64-bit program gets for `name` + ".1", as far as the usual folders and the cache tell."""
        cached = next((c for c in self.cache if c.name == f"{name}.1" and "," in c.kind), None)
        links = (f for f in self.files if f.name == name and f.is_soname and not f.dead and not aside(f.path))
        return cached or (next(links, None) if not self.cache else None)


def aside(path: str) -> bool:
    """Not the driver's own copy: a forward-compatibility package or a stub for linking."""
    return bool(COMPAT.fullmatch(path) or STUBS.fullmatch(path))


def driver_libraries(capture: Capture, mapped: tuple[MappedLibrary, ...] = ()) -> DriverLibraries:
    """Read the script's output; `mapped` is what processes have.

    Raises:
        ParseError: a line has an unknown form, or the last one is missing.
    """
    lines = list(capture.lines())
    if not lines or lines[-1].text != "end":
        raise ParseError(lines[-1].evidence if lines else capture.first().evidence, "'end' as the last line")
    body = lines[:-1]
    return DriverLibraries(
        files=tuple(_files(line for line in body if not line.text.startswith("cache|"))),
        cache=tuple(_entry(line) for line in body if line.text.startswith("cache|")),
        end=lines[-1].evidence,
        mapped=mapped,
    )


def _files(lines: Iterator[Line]) -> Iterator[Library]:
    for line in lines:
        match = _FILE.fullmatch(line.text)
        if match is None:
            raise ParseError(line.evidence, "'file|PATH|', 'empty|PATH|', 'link|PATH|TARGET' or 'dead|PATH|TARGET'")
        kind, path, target = match.groups()
        named = _NAMED.fullmatch(path)
        if named is None:  # a backup or a signature beside the library
            continue
        yield Library(
            name=named[1],
            path=path,
            target=target,
            version=_version(target if kind == "link" else path) if kind != "dead" else None,
            empty=kind == "empty",
            dead=kind == "dead",
            evidence=line.evidence,
        )


def _entry(line: Line) -> CacheEntry:
    match = _CACHE.fullmatch(line.text)
    if match is None:
        raise ParseError(line.evidence, "'cache|NAME|(KIND) => PATH|TARGET'")
    name, kind, path, target = match.groups()
    return CacheEntry(name=name, kind=kind, path=path, version=_version(target), evidence=line.evidence)


def _version(path: str) -> str | None:
    match = _NAMED.fullmatch(path)
    return match[2] if match else None
