"""What hosts with one kind of processor are expected to share of frequency control."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.cpu.fact import CpuFrequency
from gapline.orchestrator.model.trait import Trait


def traits(fact: CpuFrequency) -> tuple[Trait, ...]:
    """Drivers, governors and preferences of all policies together, and the boost switch of the whole host."""
    return tuple(_traits(fact))


def _traits(fact: CpuFrequency) -> Iterator[Trait]:
    processor = fact.processor.name
    for name, settings in (
        ("CPU frequency driver", [group.driver for group in fact.groups]),
        ("CPU frequency governor", [group.governor for group in fact.groups]),
        ("energy preference", [group.preference for group in fact.groups if group.preference]),
    ):
        if settings:
            value = ", ".join(sorted({setting.value for setting in settings}))
            yield Trait(name=name, value=value, among=processor, evidence=settings[0].evidence)
    for switch, on in ((fact.boost, "1"), (fact.no_turbo, "0")):
        if switch:
            value = "on" if switch.value == on else "off"
            yield Trait(name="CPU boost", value=value, among=processor, evidence=switch.evidence)
            break
