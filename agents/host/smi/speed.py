"""Judgements on what makes GPUs slower than they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gapline.agents.host.smi.fact import GpuState, GpuStates, Reason
from gapline.agents.host.smi.health import VERIFY
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits

CODES = (
    Code(
        code="gpu.power_limit",
        title="The power limit is below the default",
        meaning="Compute-bound work (prefill, large batches) slows down with the limit; decoding with a small batch is "
        "bound by memory and may not notice.",
    ),
    Code(
        code="gpu.application_clocks",
        title="Application clocks are set below their default",
        meaning="Somebody set them with nvidia-smi -ac. The default, and not the maximum, is what a GPU runs at when "
        "nobody asks for anything; on some models it is lower than the maximum.",
    ),
    Code(
        code="gpu.slowed_down",
        title="The hardware slows a working GPU down",
        meaning="Hardware slowdown, thermal slowdown and power brake cut the clocks to protect the board: too hot, or "
        "the power supply signals that it cannot follow (NVML, nvmlClocksEventReasons). Judged only at work.",
    ),
    Code(
        code="gpu.slowed_down_before",
        title="The hardware has slowed this GPU down for a while",
        meaning="The driver counts the time of thermal slowdown and power brake since it was loaded.",
    ),
    Code(
        code="gpu.memory_clock",
        title="The memory of a working GPU runs below its clock",
        meaning="Decoding is bound by memory bandwidth, which goes with this clock. Consumer boards drop it by a few "
        "per cent for compute, and that is normal.",
    ),
    Code(
        code="gpu.state_under_load",
        title="A busy GPU is not in a working state",
        meaning="Compute runs in P0 to P2; in other states clocks are low.",
    ),
    Code(
        code="gpu.hot",
        title="A GPU is close to the temperature at which it slows down",
        meaning="A few degrees more, and clocks drop.",
    ),
)
_DECODE = "a decode benchmark before and after"
_HARD = (Reason.HARDWARE, Reason.HARDWARE_THERMAL, Reason.POWER_BRAKE)


def speed_findings(fact: GpuStates, limits: Limits) -> Iterator[Finding]:
    """GPUs with the same setting share a finding; what happens to a single GPU is one of its own."""
    answering = [gpu for gpu in fact.gpus if not gpu.silent]
    yield from _power_limits(answering, limits.number("least_share_of_default_power"))
    yield from _application_clocks(answering)
    for gpu in answering:
        if works(gpu, limits):
            yield from _working(gpu, limits)
        yield from _before(gpu, limits.number("slowed_down_seconds"))
        if gpu.temperature.margin_c is not None and gpu.temperature.margin_c < limits.number("least_margin_c"):
            yield _hot(gpu, gpu.temperature.margin_c)


def works(gpu: GpuState, limits: Limits) -> bool:
    """Busy enough that states, clocks and reasons mean something; an idle GPU lowers all of them and that is right.

    A desktop can keep a GPU busy half of the time in its lowest state, so something must compute on it.
    """
    computes = any("C" in process.kind for process in gpu.processes)
    return computes and gpu.busy_percent is not None and gpu.busy_percent >= limits.number("loaded_percent")


def _power_limits(gpus: Sequence[GpuState], share: float) -> Iterator[Finding]:
    lowered: dict[tuple[float, float], list[GpuState]] = {}
    for gpu in gpus:
        limit, default = gpu.power.limit_w, gpu.power.default_limit_w
        if limit is not None and default is not None and limit < default * share:
            lowered.setdefault((limit, default), []).append(gpu)
    for (limit, default), group in lowered.items():
        capped = sum(Reason.POWER_CAP in gpu.clocks.reasons for gpu in group)
        more = f"; {capped} of {len(group)} GPUs were held by it when looked at" if capped else ""
        yield _setting(
            "gpu.power_limit",
            f"{limit:g} W instead of {default:g} W",
            (
                f"The power limit of {_count(group)} is {limit:g} W, the default is {default:g} W",
                f"{limit:g} W{more}",
                f"{default:g} W, unless it is meant",
            ),
            tuple(line for gpu in group for line in gpu.power.evidence),
            _revert(f"nvidia-smi -i {_ids(group)} -pl {default:g}", f"-pl {limit:g}", "more power and heat"),
        )


def _application_clocks(gpus: Sequence[GpuState]) -> Iterator[Finding]:
    lowered: dict[tuple[float, float], list[GpuState]] = {}
    for gpu in gpus:
        now, default = gpu.clocks.application_sm_mhz, gpu.clocks.default_application_sm_mhz
        if now is not None and default is not None and now < default:
            lowered.setdefault((now, default), []).append(gpu)
    for (now, default), group in lowered.items():
        yield _setting(
            "gpu.application_clocks",
            f"{now:g} MHz instead of {default:g} MHz",
            (
                f"The application clock of {_count(group)} is {now:g} MHz, the default is {default:g} MHz",
                f"{now:g} MHz",
                f"{default:g} MHz, unless it is meant",
            ),
            tuple(line for gpu in group for line in _naming(gpu, "graphics_clock")),
            _revert(f"nvidia-smi -i {_ids(group)} -rac", f"-ac MEMORY,{now:g}", "more power and heat"),
        )


def _working(gpu: GpuState, limits: Limits) -> Iterator[Finding]:
    hard = [reason for reason in gpu.clocks.reasons if reason in _HARD]
    if hard or Reason.THERMAL in gpu.clocks.reasons:
        yield _slowed(gpu, hard)
    clock, most = gpu.clocks.memory_mhz, gpu.clocks.max_memory_mhz
    if clock is not None and most is not None and clock < most * limits.number("least_share_of_memory_clock"):
        yield _memory_clock(gpu, clock, most)
    if gpu.state is not None and gpu.state not in limits.words("working_states"):
        yield _state(gpu, gpu.state)


def _slowed(gpu: GpuState, hard: list[Reason]) -> Finding:
    reasons = ", ".join(hard) or Reason.THERMAL.value
    return Finding(
        code="gpu.slowed_down",
        subject=gpu.bus_id,
        severity=Severity.HIGH if hard else Severity.MEDIUM,
        title=f"GPU {gpu.bus_id} is slowed down while it works: {reasons}",
        observed=f"{reasons} at {_number(gpu.clocks.sm_mhz)} of {_number(gpu.clocks.max_sm_mhz)} MHz, "
        f"{_number(gpu.temperature.gpu_c)} °C, {_number(gpu.power.draw_w)} W, {gpu.busy_percent} % busy",
        expected="no slowdown",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=_naming(gpu, "_slowdown") or (gpu.evidence,),
        origin="NVIDIA, NVML API reference, nvmlClocksEventReasons",
        remedy=_cool(),
    )


def _before(gpu: GpuState, least: float) -> Iterator[Finding]:
    times = (("thermal slowdown", gpu.clocks.thermal_seconds), ("power brake", gpu.clocks.brake_seconds))
    long = [f"{seconds:.0f} s of {name}" for name, seconds in times if seconds is not None and seconds >= least]
    if long:
        yield Finding(
            code="gpu.slowed_down_before",
            subject=gpu.bus_id,
            severity=Severity.LOW,
            title=f"GPU {gpu.bus_id} was slowed down by its hardware: {', '.join(long)}",
            observed=f"{', '.join(long)} since the driver was loaded",
            expected=f"less than {least:g} s of each",
            effect=Effect.PLAUSIBLE,
            confidence=Confidence.VERIFIED,
            evidence=_naming(gpu, "_counters_hw_"),
            settled_by="the same counters read before and after an hour of production load",
            remedy=_cool(),
        )


def _memory_clock(gpu: GpuState, clock: float, most: float) -> Finding:
    return Finding(
        code="gpu.memory_clock",
        subject=gpu.bus_id,
        severity=Severity.MEDIUM,
        title=f"The memory of GPU {gpu.bus_id} runs at {clock:g} of {most:g} MHz while it works",
        observed=f"{clock:g} MHz in state {gpu.state} at {gpu.busy_percent} % busy",
        expected=f"about {most:g} MHz",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=_naming(gpu, "mem_clock"),
        settled_by=_DECODE,
        remedy=_revert(f"nvidia-smi -i {gpu.uuid or gpu.bus_id} -rmc", "-lmc MIN,MAX", "more power and heat"),
    )


def _state(gpu: GpuState, state: str) -> Finding:
    return Finding(
        code="gpu.state_under_load",
        subject=gpu.bus_id,
        severity=Severity.MEDIUM,
        title=f"GPU {gpu.bus_id} is in state {state} while it works",
        observed=f"{state} at {gpu.busy_percent} % busy",
        expected="P0, P1 or P2",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(gpu.evidence, *gpu.clocks.evidence),
        settled_by="the clocks sampled over a minute of load: nvidia-smi dmon -s pc -c 60",
        remedy=_cool(),
    )


def _hot(gpu: GpuState, margin: float) -> Finding:
    return Finding(
        code="gpu.hot",
        subject=gpu.bus_id,
        severity=Severity.LOW,
        title=f"GPU {gpu.bus_id} is close to the temperature at which it slows down, or beyond it",
        observed=f"{_number(gpu.temperature.gpu_c)} °C, {margin:g} °C left",
        expected="some degrees left",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=gpu.temperature.evidence,
        settled_by="clocks and temperature sampled over a minute of load: nvidia-smi dmon -s pc -c 60",
        remedy=_cool(),
    )


def _setting(
    code: str, subject: str, told: tuple[str, str, str], evidence: tuple[Evidence, ...], remedy: Remedy
) -> Finding:
    return Finding(
        code=code,
        subject=subject,
        severity=Severity.MEDIUM,
        title=told[0],
        observed=told[1],
        expected=told[2],
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=evidence,
        settled_by=_DECODE,
        remedy=remedy,
    )


def _revert(command: str, undo: str, cost: str) -> Remedy:
    return Remedy(
        now=command,
        lasting="It holds until the driver is reloaded. Find what set it at boot: grep -rs nvidia-smi "
        "/etc/systemd/system /etc/rc.local /etc/cron*",
        undo=f"nvidia-smi {undo}, for the same GPUs",
        cost=f"{cost[0].upper()}{cost[1:]}; check the power supply and the cooling before.",
        risk=Risk.R1,
        restarts="nothing",
        verify_agent=VERIFY,
    )


def _cool() -> Remedy:
    return Remedy(
        now="nvidia-smi dmon -s pct -c 30   # power, clocks and temperature over 30 s; then look at fans, filters, the "
        "room, and the power supply's warnings in the BMC",
        lasting="Repair cooling or power supply. Until then a lower power limit gives steadier clocks than a slowdown.",
        undo="nothing to undo",
        cost="None for looking.",
        risk=Risk.R0,
        restarts="nothing",
        verify_agent=VERIFY,
    )


def _naming(gpu: GpuState, part: str) -> tuple[Evidence, ...]:
    return tuple(line for line in gpu.clocks.evidence if part in line.text)


def _count(group: Sequence[GpuState]) -> str:
    return f"GPU {group[0].bus_id}" if len(group) == 1 else f"{len(group)} GPUs"


def _ids(group: Sequence[GpuState]) -> str:
    return ",".join(gpu.uuid or gpu.bus_id for gpu in group)


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"
