"""Does the kernel do what it was asked to do, and is it in good condition?"""

from __future__ import annotations

from gapline.agents.host.kernel_state.asked import CODES as ASKED_CODES
from gapline.agents.host.kernel_state.asked import not_in_force, unread
from gapline.agents.host.kernel_state.condition import CODES as CONDITION_CODES
from gapline.agents.host.kernel_state.condition import condition
from gapline.agents.host.kernel_state.effects import CODES as EFFECT_CODES
from gapline.agents.host.kernel_state.effects import ignored, without_effect
from gapline.agents.host.kernel_state.fact import Kernel
from gapline.agents.host.kernel_state.reading import SOURCES, read
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.trait import Trait

__all__ = ["AGENT", "Kernel"]


def judge(fact: Kernel, limits: Limits) -> Outcome:
    """A file that could not be worked out may ask for more than was seen."""
    findings = (*not_in_force(fact.boot), *without_effect(fact), *ignored(fact), *condition(fact, limits))
    return judged(fact, findings, unread(fact.boot))


def traits(fact: Kernel) -> tuple[Trait, ...]:
    """What runs."""
    return (Trait(name="kernel release", value=fact.release, evidence=fact.evidence),)


AGENT = Agent(
    id="host.kernel",
    title="Kernel and its command line",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=Kernel,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(*ASKED_CODES, *EFFECT_CODES, *CONDITION_CODES),
    limits=("active_mode_since", "server_default_since"),
    traits=traits,
)
