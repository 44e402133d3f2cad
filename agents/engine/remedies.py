"""Remedies that change how an engine is started."""

from __future__ import annotations

from gapline.orchestrator.model.finding import Remedy, Risk


def restart(now: str, agent: str, *, lasting: str = "", cost: str = "The engine loads its model again.") -> Remedy:
    """A change of the engine's options or environment, which takes a restart of it and of nothing else."""
    return Remedy(
        now=now,
        lasting=lasting
        or "Make the same change where the engine is started from: the systemd unit or a drop-in of it, the Compose "
        "file, or the script.",
        undo="Put the option or variable back and restart the engine.",
        cost=cost,
        risk=Risk.R2,
        restarts="the inference engine",
        verify_agent=agent,
    )
