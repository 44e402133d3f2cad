"""Whether looking changed the machine: the device nodes before everything else, and after what may wake a GPU."""

from __future__ import annotations

from collections.abc import Mapping

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Script, Stat

BEFORE = Stat("/dev/nvidia* /dev/nvidia-caps/*")
AFTER = Script(
    "nodes_after",
    "for n in /dev/nvidia* /dev/nvidia-caps/*; do\n"
    '  [ -e "$n" ] || continue\n'
    "  stat -c '%n|%F|%t|%T|%a|%u|%g' \"$n\"\n"  # as a `Stat` prints it
    "done; :\n",
)
"""As root, nvidia-smi can load modules and make nodes (nvidia-modprobe is setuid for that), so it runs last."""


def none_there(captures: Mapping[str, Capture]) -> bool:
    """Whether the host was seen to have no control node, so that the driver cannot be up for anybody."""
    listed = _listed(captures.get(BEFORE.key))
    return listed is not None and not any(line.startswith("/dev/nvidiactl|") for line in listed)


def _listed(capture: Capture | None) -> set[str] | None:
    """The lines of a listing; none when there was nothing to list, None when it was not seen."""
    if capture is None:
        return None
    if capture.problem is not None:
        return set() if capture.problem.kind is ProblemKind.MISSING else None
    return set(capture.text.splitlines())


def changed(captures: Mapping[str, Capture]) -> Problem | None:
    """The difference between the two listings, by the keys of their sources; None without one, or without a second."""
    was, now = _listed(captures.get(BEFORE.key)), _listed(captures.get(AFTER.key))
    if was is None or now is None:
        return None
    if was == now:
        return None
    told = [f"{_shown(line)} appeared" for line in sorted(now - was)]
    told += [f"{_shown(line)} went" for line in sorted(was - now)]
    return Problem(
        kind=ProblemKind.FAILED,
        detail=f"the device nodes changed while the host was looked at: {', '.join(told)[:300]}",
        hint="What is said about this host describes it as it was before nvidia-smi ran. Audit it again.",
    )


def _shown(line: str) -> str:
    path, _, rest = line.partition("|")
    return f"{path} ({rest})"
