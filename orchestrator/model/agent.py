"""What an agent is: sources, a pure parse, a pure judge, and what its codes mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, Generic, TypeVar, cast

from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome
from gapline.orchestrator.model.source import Source
from gapline.orchestrator.model.trait import Trait


class Layer(IntEnum):
    """The five layers of elimination."""

    CEILING = 1
    SYSTEM = 2
    CONTAINER = 3
    COMMUNICATION = 4
    KERNELS = 5


class Scope(StrEnum):
    """On which targets an agent runs."""

    HOST = "host"
    CONTAINER = "container"
    PAIR = "pair"  # a container together with its host
    FLEET = "fleet"  # all targets of a run beside each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What a finding code means, for `gapline explain`."""

    code: str
    title: str
    meaning: str  # what it says about the machine and why that matters, with the origin of the claim
    yields_to: str = ""  # an agent that sees more of the same question: where it has answered, this is not said


F = TypeVar("F", bound=Fact)


def _no_traits(_: Fact) -> tuple[Trait, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Agent(Generic[F]):
    """An agent that reads one target.

    `parse` turns captures into the fact and raises nothing but `CollectError` (through `Captures.need`),
    `ParseError` and `NotApplicableError`. `judge` never raises. `traits` tells what of the fact peers are expected to
    share; what was not seen is left out. None of them touches anything outside its arguments.
    """

    id: str  # "<scope>.<concept>"
    title: str
    layer: Layer
    scope: Scope
    fact: type[F]
    sources: Mapping[str, Source]
    parse: Callable[[Captures], F]
    judge: Callable[[F, Limits], Outcome]
    codes: tuple[Code, ...]
    limits: tuple[str, ...] = ()  # the names that its playbook entry must set
    traits: Callable[[F], tuple[Trait, ...]] = _no_traits

    @property
    def is_compared(self) -> bool:
        """Whether it tells traits."""
        return self.traits is not _no_traits


class Facts:
    """The facts of a container and its host, by their types."""

    __slots__ = ("_by_type",)

    def __init__(self, by_type: Mapping[type[Fact], Fact]) -> None:
        self._by_type = dict(by_type)

    def of(self, kind: type[F]) -> F:
        """The fact of that type; only for the types an agent lists in `needs`."""
        return cast("F", self._by_type[kind])

    def get(self, kind: type[F]) -> F | None:
        """The fact of that type if its agent could give one; for the types listed in `wants`."""
        return cast("F | None", self._by_type.get(kind))


@dataclass(frozen=True, kw_only=True)
class PairAgent:
    """An agent that sets a container's facts against its host's. Its outcomes belong to the container."""

    id: str
    title: str
    layer: Layer
    needs: tuple[type[Fact], ...]  # without one of them the outcome is unknown (or not applicable)
    judge: Callable[[Facts, Limits], Outcome]
    codes: tuple[Code, ...]
    wants: tuple[type[Fact], ...] = ()
    limits: tuple[str, ...] = ()
    scope: Scope = field(default=Scope.PAIR, init=False)


@dataclass(frozen=True, kw_only=True)
class FleetAgent:
    """What compares all targets of a run by the traits that agents tell. Reads nothing, and runs with every merge."""

    id: str
    title: str
    layer: Layer
    codes: tuple[Code, ...]
    scope: Scope = field(default=Scope.FLEET, init=False)


AnyAgent = Agent[Any] | PairAgent
