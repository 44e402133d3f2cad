"""Agent `container.functions`: do the calls work that engines make, and can GPUs in use be opened once more?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gapline.agents.container.function_findings import AGENT_ID, CODES, NUMA_CALLS, function_findings
from gapline.agents.container.function_test import FUNCTIONS, Functions, functions
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Source

__all__ = ["AGENT", "Functions"]

SOURCES: Mapping[str, Source] = {"functions": FUNCTIONS}


def parse(captures: Captures) -> Functions:
    return functions(captures.need("functions"))


def judge(fact: Functions, _: Limits) -> Outcome:
    """What was not tried is unknown: a container need not have Python."""
    return judged(fact, tuple(function_findings(fact)), tuple(_unseen(fact)))


def _unseen(fact: Functions) -> Iterator[Problem]:
    missing = [name for name in (*NUMA_CALLS, "memfd_create") if fact.call(name) is None]
    if missing:
        why = {
            "nothing": "neither python3 nor numactl is in the container",
            "numactl": "python3 is not in the container",
        }
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail=f"{why.get(fact.tool, 'python3 could not try them')}, so {', '.join(missing)} were not tried",
            hint="Nothing is wrong with that. With python3 in the container they are tried: gapline rerun " + AGENT_ID,
        )


AGENT = Agent(
    id=AGENT_ID,
    title="Calls that engines make",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=Functions,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
