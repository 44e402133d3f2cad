"""Judgements on memory modules and on the errors of their controllers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.memory.fact import MemoryPolicy, MemorySlot
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.problem import Problem, ProblemKind

AGENT_ID = "host.memory_policy"
CODES = (
    Code(
        code="memory.channels_empty",
        title="Memory channels without a module",
        meaning="The bandwidth of host memory is the sum over the channels that have a module. It bounds layers and "
        "caches that an engine keeps in host memory, and the loading of models; decode from the GPUs' own memory "
        "does not use it.",
    ),
    Code(
        code="memory.channels_uneven",
        title="Memory channels are fitted unevenly",
        meaning="Channels with different amounts of memory, or processors with different numbers of channels, cannot "
        "be interleaved as one: parts of the memory are slower than others.",
    ),
    Code(
        code="memory.modules_slow",
        title="Memory modules run below what they are rated for",
        meaning="The firmware set a lower speed than the modules can do. That is right where the processor does no "
        "more, or where two modules share a channel; otherwise a setting holds them back.",
    ),
    Code(
        code="memory.uncorrected_errors",
        title="Memory errors that could not be corrected",
        meaning="A memory controller counted uncorrected errors since its driver was loaded: data was lost, and a "
        "process or the host can be stopped by the next one (Linux admin-guide/RAS/main.rst).",
    ),
)
_GPU_MEMORY = "decode from the GPUs' own memory does not use this bandwidth, offloading and loading do"
_BENCHMARK = "a benchmark of host memory (STREAM, or `mbw`), or of an engine that offloads to host memory"


def hardware_findings(fact: MemoryPolicy, limits: Limits) -> Iterator[Finding]:
    """Channels only where the board's names tell them."""
    fitted = [slot for slot in fact.slots if slot.size_mib]
    if fitted and all(slot.channel for slot in fact.slots):
        empty = _empty(fact.slots)
        if empty:
            yield _channels_empty(fact.slots, empty)
        if _is_uneven(fitted):
            yield _channels_uneven(fitted)
    slow = [slot for slot in fitted if _share(slot) < limits.number("least_share_of_rated")]
    if slow:
        yield _modules_slow(slow)
    if any(controller.uncorrected for controller in fact.controllers):
        yield _uncorrected(fact)


def channels_unseen(fact: MemoryPolicy) -> tuple[Problem, ...]:
    """Empty places ask for the channels, which some boards' names do not tell."""
    empty = [slot for slot in fact.slots if not slot.size_mib]
    if not empty or all(slot.channel for slot in fact.slots):
        return ()
    detail = (
        f"{len(empty)} of {len(fact.slots)} places for memory modules are empty, and this board's names for them (such "
        f"as {empty[0].locator!r}) do not tell the channel"
    )
    return (Problem(kind=ProblemKind.UNSEEN, detail=detail, hint="The board's manual says which place is which."),)


def _empty(slots: Sequence[MemorySlot]) -> list[tuple[str, str]]:
    """Channels of processors that have memory at all: an empty socket has nothing to slow down."""
    filled = {(slot.socket, slot.channel) for slot in slots if slot.size_mib}
    sockets = {socket for socket, _ in filled}
    return sorted({(slot.socket, slot.channel) for slot in slots if slot.socket in sockets} - filled)


def _sizes(fitted: Sequence[MemorySlot]) -> dict[tuple[str, str], int]:
    sizes: dict[tuple[str, str], int] = {}
    for slot in fitted:
        place = slot.socket, slot.channel
        sizes[place] = sizes.get(place, 0) + slot.size_mib
    return dict(sorted(sizes.items()))


def _is_uneven(fitted: Sequence[MemorySlot]) -> bool:
    sizes = _sizes(fitted)
    channels = [sum(socket == one for socket, _ in sizes) for one in {socket for socket, _ in sizes}]
    return len(set(sizes.values())) > 1 or len(set(channels)) > 1


def _share(slot: MemorySlot) -> float:
    return slot.set_mts / slot.rated_mts if slot.set_mts and slot.rated_mts else 1.0


def _channels_empty(slots: Sequence[MemorySlot], empty: Sequence[tuple[str, str]]) -> Finding:
    channels = {(slot.socket, slot.channel) for slot in slots}
    return Finding(
        code="memory.channels_empty",
        subject="memory channels",
        severity=Severity.INFO,
        base_severity=Severity.MEDIUM,
        severity_reason=f"medium → info: {_GPU_MEMORY}",
        title=f"{len(empty)} of {len(channels)} memory channels have no module",
        observed="; ".join(f"processor {socket}, channel {channel}: empty" for socket, channel in empty),
        expected="a module in every channel",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.INFERRED,
        evidence=tuple(slot.evidence for slot in slots if (slot.socket, slot.channel) in set(empty)),
        settled_by=_BENCHMARK,
        remedy=_hands_on("Fit the same module into every channel, in the order that the board's manual gives."),
    )


def _channels_uneven(fitted: Sequence[MemorySlot]) -> Finding:
    return Finding(
        code="memory.channels_uneven",
        subject="memory channels",
        severity=Severity.LOW,
        base_severity=Severity.MEDIUM,
        severity_reason=f"medium → low: {_GPU_MEMORY}",
        title="Memory channels are fitted unevenly",
        observed="; ".join(f"processor {s}, channel {c}: {mib >> 10} GiB" for (s, c), mib in _sizes(fitted).items()),
        expected="the same amount in every channel of every processor",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.INFERRED,
        evidence=tuple(slot.evidence for slot in fitted),
        settled_by=_BENCHMARK,
        remedy=_hands_on(
            "Fit the same modules into all channels, in the order that the board's manual gives; reseat or "
            "replace one that is plugged in and missing here."
        ),
    )


def _modules_slow(slow: Sequence[MemorySlot]) -> Finding:
    rates = sorted({(slot.rated_mts, slot.set_mts) for slot in slow}, key=str)
    return Finding(
        code="memory.modules_slow",
        subject="memory modules",
        severity=Severity.INFO,
        base_severity=Severity.MEDIUM,
        severity_reason="medium → info: right where the processor does no more, or where modules share a channel; and "
        + _GPU_MEMORY,
        title=f"{len(slow)} memory module(s) run below what they are rated for",
        observed="; ".join(f"rated {rated} MT/s, set to {put} MT/s" for rated, put in rates),
        expected="the highest speed that processor and modules share",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=tuple(line for slot in slow for line in slot.speeds),
        settled_by=_BENCHMARK,
        remedy=_hands_on(
            "Compare with the processor's data sheet; in the firmware's setup put the memory clock to auto."
        ),
    )


def _uncorrected(fact: MemoryPolicy) -> Finding:
    struck = [controller for controller in fact.controllers if controller.uncorrected]
    evidence: tuple[Evidence, ...] = tuple(line for controller in struck for line in controller.evidence)
    return Finding(
        code="memory.uncorrected_errors",
        subject="memory controllers",
        severity=Severity.HIGH,
        title=f"{sum(one.uncorrected for one in struck)} memory error(s) could not be corrected",
        observed="; ".join(f"{one.name}: {one.uncorrected} uncorrected, {one.corrected} corrected" for one in struck),
        expected="0",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=evidence,
        origin="Linux admin-guide/RAS/main.rst: ue_count counts errors that the hardware could not correct",
        remedy=_hands_on(
            "Find the module: grep -H . /sys/devices/system/edac/mc/mc*/dimm*/dimm_ue_count, the kernel's log and the "
            "BMC's event log. Replace it."
        ),
    )


def _hands_on(now: str) -> Remedy:
    return Remedy(
        now=now,
        lasting="It stays.",
        undo="Put the modules, or the setting, back.",
        cost="Downtime of the whole host.",
        risk=Risk.R3,
        restarts="the host",
        verify_agent=AGENT_ID,
    )
