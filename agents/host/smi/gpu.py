"""One <gpu> element as the state of a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gapline.agents.host.cpu.fact import Setting
from gapline.agents.host.smi.document import Element
from gapline.agents.host.smi.fact import (
    Clocks,
    GpuProcessEntry,
    GpuState,
    Memory,
    Power,
    Reason,
    SmiLink,
    Temperature,
)
from gapline.agents.host.smi.memory_errors import memory_errors
from gapline.agents.host.smi.value import SILENT, count, quantity, switch, words
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence

MAX_PROCESSES = 256


def bus_id(text: str) -> str:
    """As Linux writes it: nvidia-smi gives the domain eight digits and capital letters."""
    domain, rest = text.split(":", 1)
    return f"{int(domain, 16):04x}:{rest.lower()}"


def gpu_state(gpu: Element, index: int) -> GpuState:
    """The fact of one GPU.

    Raises:
        ParseError: a value that is judged has an unknown form.
    """
    if _BUS_ID.fullmatch(gpu.identity) is None:
        raise ParseError(gpu.evidence, "a PCI address as the id of a GPU")
    state = words(gpu.find("performance_state"))
    if state is not None and _STATE.fullmatch(state) is None:
        raise ParseError((gpu.find("performance_state") or gpu).evidence, "a state P0 … P15")
    mode = gpu.find("mig_mode")
    return GpuState(
        uuid=words(gpu.find("uuid")) or "",
        bus_id=bus_id(gpu.identity),
        index=index,
        minor=count(gpu.find("minor_number")),
        name=words(gpu.find("product_name")) or "",
        architecture=words(gpu.find("product_architecture")),
        state=state,
        busy_percent=count(gpu.find("utilization", "gpu_util"), "%"),
        persistence=switch(gpu.find("persistence_mode")),
        compute_mode=words(gpu.find("compute_mode")),
        mig=switch(mode.find("current_mig") if mode else None),
        mig_pending=switch(mode.find("pending_mig") if mode else None),
        mig_instances=len(gpu.all("mig_devices", "mig_device")),
        virtualization=words(gpu.find("gpu_virtualization_mode", "virtualization_mode")),
        gsp_firmware=words(gpu.find("gsp_firmware_version")),
        recovery=_recovery(gpu),
        silent=_silent(gpu),
        clocks=_clocks(gpu),
        power=_power(gpu),
        temperature=_temperature(gpu),
        memory=_memory(gpu),
        errors=memory_errors(gpu),
        link=_link(gpu),
        processes=tuple(_process(one) for one in gpu.all("processes", "process_info")[:MAX_PROCESSES]),
        evidence=gpu.evidence,
        settings=_settings(gpu),
        modes=_lines(
            gpu.find("persistence_mode"),
            gpu.find("compute_mode"),
            gpu.find("mig_mode", "current_mig"),
            gpu.find("minor_number"),
            gpu.find("gpu_recovery_action"),
            gpu.find("gpu_reset_status", "reset_required"),
        ),
    )


def _settings(gpu: Element) -> dict[str, Setting]:
    elements = {
        "VBIOS": gpu.find("vbios_version"),
        "power limit": _power_limit(gpu),
        "ECC": gpu.find("ecc_mode", "current_ecc"),
        "persistence mode": gpu.find("persistence_mode"),
        "application clock": gpu.find("applications_clocks", "graphics_clock"),
    }
    return {
        name: Setting(value=text, evidence=element.evidence)
        for name, element in elements.items()
        if element is not None and (text := words(element))
    }


def _silent(gpu: Element) -> bool:
    """Single values can be unknown to a healthy GPU; one that does not know its state, or calls itself lost, is not."""
    state = gpu.find("performance_state")
    return (state is not None and state.text in SILENT) or any("GPU is lost" in one.text for one in gpu.walk())


def _recovery(gpu: Element) -> str | None:
    """`gpu_recovery_action` of drivers since 560; before them two switches."""
    told = words(gpu.find("gpu_recovery_action"))
    status = gpu.find("gpu_reset_status")
    if told or status is None:
        return told
    if switch(status.find("reset_required")):
        return "Reset"
    return "Drain and Reset" if switch(status.find("drain_and_reset_recommended")) else None


def _clocks(gpu: Element) -> Clocks:
    reasons = gpu.find("clocks_event_reasons") or gpu.find("clocks_throttle_reasons")
    active, lines = _reasons(reasons)
    times = "clocks_event_reasons_counters"
    thermal = gpu.find(times, f"{times}_hw_therm_slowdown")
    brake = gpu.find(times, f"{times}_hw_power_brake")
    memory, application = gpu.find("clocks", "mem_clock"), gpu.find("applications_clocks", "graphics_clock")
    return Clocks(
        sm_mhz=quantity(gpu.find("clocks", "sm_clock"), "MHz"),
        memory_mhz=quantity(memory, "MHz"),
        max_sm_mhz=quantity(gpu.find("max_clocks", "sm_clock"), "MHz"),
        max_memory_mhz=quantity(gpu.find("max_clocks", "mem_clock"), "MHz"),
        application_sm_mhz=quantity(application, "MHz"),
        default_application_sm_mhz=quantity(gpu.find("default_applications_clocks", "graphics_clock"), "MHz"),
        reasons=active,
        thermal_seconds=_seconds(thermal),
        brake_seconds=_seconds(brake),
        evidence=_lines(memory, application, *lines, *(one for one in (thermal, brake) if _seconds(one))),
    )


def _seconds(element: Element | None) -> float | None:
    value = quantity(element, "us")
    return None if value is None else value / 1e6


def _reasons(reasons: Element | None) -> tuple[tuple[Reason, ...], tuple[Element, ...]]:
    """Active or not, one element each; or all together as NVML's bit mask."""
    if reasons is None:
        return (), ()
    if _MASK.fullmatch(reasons.text):
        mask = int(reasons.text, 16)
        return tuple(reason for bit, _, reason in _REASONS if mask & bit), (reasons,)
    active = [(reason, one) for one in reasons.children for reason in _named(one) if switch(one)]
    return tuple(reason for reason, _ in active), tuple(one for _, one in active)


def _named(element: Element) -> Iterable[Reason]:
    return (reason for _, name, reason in _REASONS if element.name.endswith(f"_reason_{name}"))


def _power(gpu: Element) -> Power:
    """In watts, whatever it is written in."""
    now, limit = _power_readings(gpu), _power_limit(gpu)
    default = now.find("default_power_limit")
    draws = [now.find(f"{kind}power_draw") for kind in ("instant_", "average_", "")]
    return Power(
        draw_w=next((watts for one in draws if (watts := quantity(one, "W")) is not None), None),
        limit_w=quantity(limit, "W"),
        default_limit_w=quantity(default, "W"),
        min_limit_w=quantity(now.find("min_power_limit"), "W"),
        max_limit_w=quantity(now.find("max_power_limit"), "W"),
        evidence=_lines(limit, default),
    )


def _power_readings(gpu: Element) -> Element:
    """`power_readings` until 530, `gpu_power_readings` since."""
    return gpu.find("gpu_power_readings") or gpu.find("power_readings") or gpu


def _power_limit(gpu: Element) -> Element | None:
    """The limit in force, which was `enforced_power_limit` until 530."""
    now = _power_readings(gpu)
    return now.find("current_power_limit") or now.find("enforced_power_limit")


def _temperature(gpu: Element) -> Temperature:
    """Newer GPUs tell the degrees that are left, older ones the temperature at which they slow down."""
    one = gpu.find("temperature") or gpu
    now, left, slow = (one.find(name) for name in ("gpu_temp", "gpu_temp_tlimit", "gpu_temp_slow_threshold"))
    celsius, limit, margin = quantity(now, "C"), quantity(slow, "C"), quantity(left, "C")
    if margin is None and celsius is not None and limit is not None:
        margin = limit - celsius
    memory = quantity(one.find("memory_temp"), "C")
    return Temperature(gpu_c=celsius, memory_c=memory, margin_c=margin, evidence=_lines(now, left, slow))


def _memory(gpu: Element) -> Memory:
    return Memory(
        total_mib=count(gpu.find("fb_memory_usage", "total"), "MiB"),
        used_mib=count(gpu.find("fb_memory_usage", "used"), "MiB"),
        bar1_mib=count(gpu.find("bar1_memory_usage", "total"), "MiB"),
        confidential_mib=count(gpu.find("cc_protected_memory_usage", "total"), "MiB"),
    )


def _link(gpu: Element) -> SmiLink:
    info = gpu.find("pci", "pci_gpu_link_info") or gpu
    return SmiLink(
        generation=count(info.find("pcie_gen", "current_link_gen")),
        max_generation=count(info.find("pcie_gen", "max_link_gen")),
        device_generation=count(info.find("pcie_gen", "max_device_link_gen")),
        width=count(info.find("link_widths", "current_link_width"), "x"),
        max_width=count(info.find("link_widths", "max_link_width"), "x"),
        replays=count(gpu.find("pci", "replay_counter")),
    )


def _process(one: Element) -> GpuProcessEntry:
    pid = count(one.find("pid"))
    if pid is None:
        raise ParseError(one.evidence, "a process with its number")
    return GpuProcessEntry(
        pid=pid,
        kind=words(one.find("type")) or "",
        name=(words(one.find("process_name")) or "").partition(" ")[0],
        used_mib=count(one.find("used_memory"), "MiB"),
    )


def _lines(*elements: Element | None) -> tuple[Evidence, ...]:
    return tuple(one.evidence for one in elements if one is not None)


_BUS_ID = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]", re.ASCII)
_STATE = re.compile(r"P([0-9]|1[0-5])", re.ASCII)
_MASK = re.compile(r"0x[0-9a-fA-F]{1,16}", re.ASCII)
# NVML, nvmlClocksEventReasons: the bit and the name of each.
_REASONS = (
    (0x1, "gpu_idle", Reason.IDLE),
    (0x2, "applications_clocks_setting", Reason.APPLICATION_CLOCKS),
    (0x4, "sw_power_cap", Reason.POWER_CAP),
    (0x8, "hw_slowdown", Reason.HARDWARE),
    (0x10, "sync_boost", Reason.SYNC_BOOST),
    (0x20, "sw_thermal_slowdown", Reason.THERMAL),
    (0x40, "hw_thermal_slowdown", Reason.HARDWARE_THERMAL),
    (0x80, "hw_power_brake_slowdown", Reason.POWER_BRAKE),
    (0x100, "display_clocks_setting", Reason.DISPLAY),
)
