"""Agent `container.gpus`: the GPUs that the driver's library shows to programs in the container."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.orchestrator.model.agent import Agent, Code, Layer, Scope
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, judged
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.source import Command, Source, Vantage

AGENT_ID = "container.gpus"
_QUERY = "--query-gpu=pci.bus_id,mig.mode.current,name"
SOURCES: Mapping[str, Source] = {
    "gpus": Command(("nvidia-smi", _QUERY, "--format=csv,noheader"), vantage=Vantage.INSIDE, timeout=20, wakes_gpu=True)
}
_ROW = re.compile(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]), ([][A-Za-z/ ]{1,20}), (.{1,100})")
_FAILURE = re.compile(
    r"(?:Failed to initialize NVML: |NVIDIA-SMI has failed because |Unable to determine the device handle|"
    r"No devices were found).*"
)

CODES = (
    Code(
        code="gpus.none_shown",
        title="The driver's library shows no GPU in the container",
        meaning="nvidia-smi is there and fails, or lists nothing. It says why in a few words: versions that differ, "
        "nodes that are denied, a GPU that is lost. Agents for those say what to do; this one says that it is so.",
    ),
)


class ShownGpu(Fact):
    """One GPU. `mig`: it is cut into instances; None where it cannot be."""

    bus_id: str  # with four digits of the domain, lower case, as sysfs writes it
    model: str
    mig: bool | None
    evidence: Evidence


class ShownGpus(Fact):
    """All of them, or what nvidia-smi said instead."""

    gpus: tuple[ShownGpu, ...]
    failure: str
    evidence: Evidence


def parse(captures: Captures) -> ShownGpus:
    """A failure that nvidia-smi names is a fact; any other means that it was not seen."""
    capture = captures["gpus"]
    first = capture.first()
    if capture.problem is not None and capture.problem.kind is ProblemKind.FAILED and _FAILURE.match(first.text):
        return ShownGpus(gpus=(), failure=first.text[:200], evidence=first.evidence)
    lines = tuple(captures.need("gpus").lines())
    if lines and _FAILURE.match(lines[0].text):
        return ShownGpus(gpus=(), failure=lines[0].text[:200], evidence=lines[0].evidence)
    return ShownGpus(gpus=tuple(_gpus(capture, lines)), failure="", evidence=first.evidence)


def _gpus(capture: Capture, lines: tuple[Line, ...]) -> Iterator[ShownGpu]:
    if not lines:
        raise ParseError(capture.first().evidence, "a line for each GPU")
    for line in lines:
        match = _ROW.fullmatch(line.text)
        if match is None:
            raise ParseError(line.evidence, "'BUS ID, MIG MODE, NAME'")
        mig = {"Enabled": True, "Disabled": False}.get(match[3])
        bus_id = f"{int(match[1], 16):04x}:{match[2].lower()}"
        yield ShownGpu(bus_id=bus_id, model=match[4], mig=mig, evidence=line.evidence)


def judge(fact: ShownGpus, _: Limits) -> Outcome:
    """Which GPUs should be there is the business of `pair.gpus_seen`."""
    return judged(fact, () if fact.gpus else (_none(fact),))


def _none(fact: ShownGpus) -> Finding:
    return Finding(
        code="gpus.none_shown",
        subject="nvidia-smi",
        severity=Severity.HIGH,
        title="nvidia-smi shows no GPU in the container",
        observed=fact.failure,
        expected="the GPUs that the container was given",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(fact.evidence,),
        remedy=Remedy(
            now="See pair.driver_match (versions), pair.device_chain (nodes and rules) and host.kernel_log (lost "
            "GPUs), "
            "in this order; they name the repair.",
            lasting="As those agents say.",
            undo="Nothing was changed.",
            cost="None for looking.",
            risk=Risk.R0,
            restarts="nothing",
            verify_agent=AGENT_ID,
        ),
    )


AGENT = Agent(
    id=AGENT_ID,
    title="GPUs that programs in the container see",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=ShownGpus,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
