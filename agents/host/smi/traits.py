"""What GPUs of one model are expected to share of their settings."""

from __future__ import annotations

from gapline.agents.host.smi.fact import GpuStates
from gapline.orchestrator.model.trait import Trait


def traits(fact: GpuStates) -> tuple[Trait, ...]:
    """Of each GPU that answers. How GPUs are shared out (MIG, compute mode) may differ, and so may what is measured."""
    return tuple(
        Trait(subject=gpu.bus_id, name=name, value=setting.value, among=gpu.name, evidence=setting.evidence)
        for gpu in fact.gpus
        if not gpu.silent
        for name, setting in gpu.settings.items()
    )
