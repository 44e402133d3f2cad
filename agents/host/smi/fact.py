"""The state of each GPU as nvidia-smi tells it. None: the GPU or the driver has no such value."""

from __future__ import annotations

from enum import StrEnum

from gapline.agents.host.cpu.fact import Setting
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem


class Reason(StrEnum):
    """Why the clocks are not higher, as NVML calls it."""

    IDLE = "idle"
    APPLICATION_CLOCKS = "application clocks"
    POWER_CAP = "software power cap"
    HARDWARE = "hardware slowdown"
    SYNC_BOOST = "sync boost"
    THERMAL = "software thermal slowdown"
    HARDWARE_THERMAL = "hardware thermal slowdown"
    POWER_BRAKE = "hardware power brake"
    DISPLAY = "display clocks"


class Clocks(Fact):
    """Clocks of the moment, the hardware's maximum, and what was set against what is set by default."""

    sm_mhz: float | None
    memory_mhz: float | None
    max_sm_mhz: float | None
    max_memory_mhz: float | None
    application_sm_mhz: float | None
    default_application_sm_mhz: float | None
    reasons: tuple[Reason, ...]  # active at the moment
    thermal_seconds: float | None  # slowed down by hardware since the driver was loaded
    brake_seconds: float | None
    evidence: tuple[Evidence, ...]  # memory clock, application clocks, active reasons, times above zero


class Power(Fact):
    """In watts."""

    draw_w: float | None
    limit_w: float | None  # in force
    default_limit_w: float | None
    min_limit_w: float | None
    max_limit_w: float | None
    evidence: tuple[Evidence, ...]


class Temperature(Fact):
    """In °C. `margin_c`: how far the GPU is from where it slows down."""

    gpu_c: float | None
    memory_c: float | None
    margin_c: float | None
    evidence: tuple[Evidence, ...]


class Memory(Fact):
    """In MiB. BAR1 is the window through which CPU and peers reach the memory."""

    total_mib: int | None
    used_mib: int | None
    bar1_mib: int | None
    confidential_mib: int | None


class Errors(Fact):
    """Memory errors since the driver was loaded, and what they led to."""

    ecc: bool | None
    ecc_pending: bool | None  # after the next reset
    uncorrected: int | None  # volatile
    corrected: int | None
    uncorrected_ever: int | None  # aggregate
    rows_uncorrected: int | None  # rows replaced by spare ones, of GPUs since Ampere
    rows_corrected: int | None
    pages_retired: int | None  # of older GPUs
    banks_low: int | None  # banks of memory with few or no spare rows left
    pending: tuple[str, ...]  # repairs that wait for a reset
    failed: tuple[str, ...]  # repairs that are no longer possible
    evidence: tuple[Evidence, ...]  # the lines that say anything but zero and no


class SmiLink(Fact):
    """PCI Express. An idle GPU lowers the generation of the moment; the maximum is that of GPU and slot together."""

    generation: int | None
    max_generation: int | None
    device_generation: int | None
    width: int | None
    max_width: int | None
    replays: int | None


class GpuProcessEntry(Fact):
    """A process on the GPU, by its number on the host. The name is cut at its first blank on the target."""

    pid: int
    kind: str  # "C" computes, "G" draws
    name: str
    used_mib: int | None


class GpuState(Fact):
    """One GPU."""

    uuid: str
    bus_id: str  # as Linux writes it: "0000:41:00.0"
    index: int  # its place in this list, which is NVML's index while every GPU answers
    minor: int | None  # the N of /dev/nvidiaN
    name: str
    architecture: str | None
    state: str | None  # P0 … P15
    busy_percent: int | None
    persistence: bool | None
    compute_mode: str | None
    mig: bool | None
    mig_pending: bool | None
    mig_instances: int
    virtualization: str | None
    gsp_firmware: str | None  # None: the GPU is run without its system processor
    recovery: str | None  # what the driver asks for to get over an error
    silent: bool  # it answers no more
    clocks: Clocks
    power: Power
    temperature: Temperature
    memory: Memory
    errors: Errors
    link: SmiLink
    processes: tuple[GpuProcessEntry, ...]
    evidence: Evidence
    settings: dict[str, Setting]  # as nvidia-smi writes them: what is compared among GPUs of one model
    modes: tuple[Evidence, ...]  # persistence, compute mode, MIG, minor number, recovery action


class SaidOfGpu(Fact):
    """What was said of a GPU outside of its element: no handle, not listed, InfoROM corrupted."""

    bus_id: str
    said: str
    evidence: Evidence


class GpuStates(Fact):
    """All GPUs that nvidia-smi shows, those that it should, and what it could not be asked."""

    driver: str | None
    gpus: tuple[GpuState, ...]
    lost: tuple[SaidOfGpu, ...]
    corrupted: tuple[SaidOfGpu, ...]  # GPUs whose InfoROM it calls corrupted
    unseen: tuple[Problem, ...]
