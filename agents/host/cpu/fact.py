"""How the frequency of a host's CPUs is governed."""

from __future__ import annotations

from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact

DYNAMIC_DRIVERS = frozenset({"intel_pstate", "amd-pstate-epp"})
"""Their `powersave` is an algorithm that follows the load, not the lowest frequency (Linux admin-guide/pm)."""


class Setting(Fact):
    """One value and the line it was read from."""

    value: str
    evidence: Evidence


class CpuGroup(Fact):
    """CPUs whose policies say the same. The lines are those of the first of them."""

    cpus: str  # "0-127"
    count: int
    driver: Setting
    governor: Setting
    preference: Setting | None  # energy_performance_preference; only drivers that run in active mode have one
    boost: Setting | None  # the policy's own switch, where the driver has one
    allowed: Setting  # scaling_max_freq
    highest: Setting  # cpuinfo_max_freq
    allowed_mhz: int
    highest_mhz: int

    @property
    def is_dynamic(self) -> bool:
        """Whether `powersave` means an algorithm here."""
        return self.driver.value in DYNAMIC_DRIVERS


class Processor(Fact):
    """The first CPU of /proc/cpuinfo. Fields that an architecture does not print are empty or None."""

    vendor: str
    name: str
    family: int | None
    model: int | None
    virtual: Evidence | None  # the line with the hypervisor flag; None on bare metal or where flags are not printed


class CpuFrequency(Fact):
    """Everything that decides how fast the CPUs may run."""

    groups: tuple[CpuGroup, ...]  # empty: the kernel has no cpufreq policies
    boost: Setting | None  # /sys/devices/system/cpu/cpufreq/boost
    no_turbo: Setting | None  # /sys/devices/system/cpu/intel_pstate/no_turbo
    processor: Processor
    cppc: bool  # the firmware describes the CPU's performance levels (_CPC), which amd_pstate needs
    power_profile: Setting | None  # ACPI: 4 enterprise server, 5 small office server, 7 performance server
    parameters: tuple[Setting, ...]  # those of the kernel's command line that choose a driver
    kernel: str

    @property
    def boosted(self) -> bool | None:
        """Whether all CPUs may exceed their nominal frequency; None when nothing says."""
        said = [self.boost.value == "1"] if self.boost else []
        said += [self.no_turbo.value == "0"] if self.no_turbo else []
        said += [group.boost.value == "1" for group in self.groups if group.boost]
        return all(said) if said else None
