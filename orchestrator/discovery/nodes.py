"""Whether looking changed the machine: the device nodes before everything else, and after what may wake a GPU."""

from __future__ import annotations

from collections.abc import Mapping

from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Script

_LISTING = 'for n in /dev/nvidia* /dev/nvidia-caps/*; do [ -e "$n" ] && stat -c \'%n %t:%T %a\' "$n"; done; :\n'

BEFORE = Script("nodes_before", _LISTING)
AFTER = Script("nodes_after", _LISTING)
"""As root, nvidia-smi can load modules and make nodes (nvidia-modprobe is setuid for that), so it runs last."""


def none_there(captures: Mapping[str, Capture]) -> bool:
    """Whether the host was seen to have no control node, so that the driver cannot be up for anybody."""
    before = captures.get(BEFORE.key)
    return before is not None and before.problem is None and "/dev/nvidiactl " not in before.text


def changed(captures: Mapping[str, Capture]) -> Problem | None:
    """The difference between the two listings, by the keys of their sources; None without one, or without a second."""
    before, after = captures.get(BEFORE.key), captures.get(AFTER.key)
    if before is None or after is None or before.problem is not None or after.problem is not None:
        return None
    was, now = (set(one.text.splitlines()) for one in (before, after))
    if was == now:
        return None
    told = [f"{line} appeared" for line in sorted(now - was)] + [f"{line} went" for line in sorted(was - now)]
    return Problem(
        kind=ProblemKind.FAILED,
        detail=f"the device nodes changed while the host was looked at: {', '.join(told)[:300]}",
        hint="What is said about this host describes it as it was before nvidia-smi ran. Audit it again.",
    )
