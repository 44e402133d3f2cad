"""What an engine's log says about back-ends and fall-backs: phrases of known form only, cut out on the target."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.gpu_users import GPU_USERS
from gapline.orchestrator.model.capture import Capture, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.source import Script, Vantage

# The first lines an engine writes when it starts: what stands above the last of them is history.
_STARTS = (
    r"vLLM API server version [0-9A-Za-z.+]{1,40}",
    r"server_args=ServerArgs\(",
    r"Listening on [0-9a-z.:]{2,40} \(version [0-9.]{1,20}",
    r"build: [0-9]{1,6} \([0-9a-f]{6,12}\)",
)
_PHRASES = (
    r"Using [A-Za-z0-9_ ]{1,40} backend",
    r"Using .?[A-Z0-9_]{2,40}.? [A-Za-z0-9]{2,16} MoE backend",
    r"Using [A-Za-z0-9_]{1,50}LinearKernel for [A-Za-z0-9_]{1,40}",
    r"Using default MoE config",
    r"Config file not found at [A-Za-z0-9_./=,-]{1,300}\.json",
    r"Your GPU does not have native support for FP[48] computation",
    r"Custom allreduce is disabled because [A-Za-z0-9 ,-]{1,120}",
    r"(enforce_eager|disable_cuda_graph)=(True|False)",
    r"tensor_parallel_size=[0-9]{1,3}",
    r"vLLM is using nccl==[0-9.]{1,20}",
    r"NCCL version [0-9.]{3,12}",
    r"inference compute.{0,4} id=[A-Za-z0-9]{1,4}",
    r"failure during [A-Za-z-]{0,20} ?GPU discovery",
    r"bootstrap discovery took.{0,4} duration=[0-9.]{1,16}m?s",
    r"no compatible GPUs were discovered",
    r"no usable GPU found",
    r"ggml_cuda_init: found [0-9]{1,3} CUDA devices",
    r"offloaded [0-9]{1,4}/[0-9]{1,4} layers to GPU",
)
_KNOWN = re.compile("|".join((*_STARTS, *_PHRASES)))
_START = re.compile("|".join(_STARTS))
_HEADING = re.compile(r"log\|(file|run|unit|docker)\|([A-Za-z0-9@_.:\\-]{1,80})")

# Engines are found by the UVM node they hold, and by name: one that fell back to the CPU holds none. At most four logs.
# An engine names its back-ends when it starts, so of a journal the first lines of the unit's current run are read.
_LOG = (
    GPU_USERS
    + r"""
phrases() { grep -aoE """
    + " ".join(f"-e '{pattern}'" for pattern in (*_STARTS, *_PHRASES))
    + r""" | tail -n 300 | sed 's/^/say|/'; }
name() { case $1 in *[!A-Za-z0-9@_.:-]*|'') echo log ;; *) printf '%s\n' "$1" ;; esac; }
T='timeout -k 1 5'; $T true 2>/dev/null || T=
seen=' '; count=0
once() {
  case $seen in *" $1 "*) return 1 ;; esac
  [ "$count" -lt 4 ] || return 1
  seen="$seen$1 "; count=$((count + 1))
}
of() {
  for n in 1 2; do
    if [ -f "/proc/$1/fd/$n" ]; then
      l=$(readlink "/proc/$1/fd/$n")
      if once "$l"; then
        printf 'log|file|%s\n' "$(name "${l##*/}")"
        $T tail -c 33554432 "/proc/$1/fd/$n" 2>/dev/null | phrases
      fi
      return 0
    fi
  done
  while IFS= read -r l; do
    case $l in 0::*|1:name=*) ;; *) continue ;; esac
    c=${l##*/}; c=${c#docker-}; c=${c%.scope}
    case $l in
      *docker*)
        j=/var/lib/docker/containers/$c/$c-json.log
        if [ -f "$j" ] && once "$j"; then
          printf 'log|docker|%s\n' "$(name "$c" | cut -c1-12)"
          $T tail -c 33554432 "$j" 2>/dev/null | phrases
        fi ;;
      *.service)
        if command -v journalctl >/dev/null 2>&1 && once "$c"; then
          i=$(systemctl show -p InvocationID --value "$c" 2>/dev/null)
          case $i in
            ''|*[!0-9a-f]*)
              printf 'log|unit|%s\n' "$(name "$c")"
              $T journalctl -q -b -u "$c" -o cat -n 20000 --no-pager 2>/dev/null | phrases ;;
            *)
              printf 'log|run|%s\n' "$(name "$c")"
              $T journalctl -q -b -o cat --no-pager "_SYSTEMD_INVOCATION_ID=$i" 2>/dev/null |
                head -n 20000 | phrases ;;
          esac
        fi ;;
    esac
  done <"/proc/$1/cgroup"
}
f=$(gpu_users /proc/[0-9]*/fd)
for p in $(cuda_pids "$f"); do [ ! -r "/proc/$p/cgroup" ] || of "$p"; done
for p in /proc/[0-9]*/comm; do
  IFS= read -r c 2>/dev/null <"$p" || continue
  case $c in
    ollama|llama-server|vllm*|VLLM*|sglang*|tritonserver|text-generation|trtllm*)
      p=${p%/comm}; [ ! -r "$p/cgroup" ] || of "${p#/proc/}" ;;
  esac
done
echo end
"""
)

INSIDE_LOG = Script(name="engine-log", vantage=Vantage.INSIDE, root=True, timeout=25, text=_LOG)
HOST_LOG = Script(
    name="host-engine-log",
    root=True,
    timeout=25,
    text=_LOG.replace(
        "of() {",
        "of() {\n  while IFS= read -r l; do\n    case $l in */lxc/*|*/lxc.payload*) return 0 ;; esac\n"
        '  done <"/proc/$1/cgroup"',
        1,
    ),
)


class Phrase(Fact):
    """One phrase that the log holds since the engine's last start."""

    text: str
    evidence: Evidence


class EngineLog(Fact):
    """A log and what it says. `kind`: file, docker, unit (the end of its journal) or run (what it said in this run)."""

    kind: str
    name: str
    started: bool  # the engine's start stands in what was read, or all of it is of this run
    phrases: tuple[Phrase, ...]

    def matching(self, pattern: str) -> tuple[Phrase, ...]:
        """The phrases in which the pattern occurs, in their order."""
        return tuple(phrase for phrase in self.phrases if re.search(pattern, phrase.text))


def engine_logs(capture: Capture) -> tuple[EngineLog, ...]:
    """Read the script's output.

    Raises:
        ParseError: a line is neither a heading nor a known phrase, or the output stops early.
    """
    lines = list(capture.lines())
    if not lines or lines[-1].text != "end":
        raise ParseError(lines[-1].evidence if lines else capture.first().evidence, "'end' as the last line")
    return tuple(_log(heading, phrases) for heading, phrases in _blocks(lines[:-1]))


def _blocks(lines: list[Line]) -> Iterator[tuple[Line, list[Line]]]:
    block: tuple[Line, list[Line]] | None = None
    for line in lines:
        if _HEADING.fullmatch(line.text):
            if block:
                yield block
            block = (line, [])
        elif block and line.text.startswith("say|") and _KNOWN.fullmatch(line.text[4:]):
            block[1].append(line._replace(text=line.text[4:]))
        else:
            raise ParseError(line.evidence, "the heading of a log or a known phrase")
    if block:
        yield block


def _log(heading: Line, lines: list[Line]) -> EngineLog:
    _, kind, name = heading.text.split("|")
    starts = [at for at, line in enumerate(lines) if _START.fullmatch(line.text)]
    since = lines[starts[-1] :] if starts else lines
    unique = {line.text: line for line in since}
    phrases = tuple(Phrase(text=line.text, evidence=line.evidence) for line in unique.values())
    return EngineLog(kind=kind, name=name, started=bool(starts) or kind == "run", phrases=phrases)
