"""NVSwitches, and the service without which GPUs behind them do not compute."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.source import Glob, Stat

FABRIC_MANAGER, PERSISTENCE = "nvidia-fabricmanager", "nvidia-persistenced"
SWITCHES = Stat("/proc/driver/nvidia-nvswitch/devices/*")
_SLICES = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")  # pure cgroup v2, and with v1
SERVICES = Glob(
    " ".join(f"{place}/{name}.service/cgroup.procs" for place in _SLICES for name in (FABRIC_MANAGER, PERSISTENCE))
)
CODES = (
    Code(
        code="nvidia.fabric_manager",
        title="There are NVSwitches, and Fabric Manager is not seen running",
        meaning="Until Fabric Manager has set up the NVSwitches, CUDA initialises no GPU behind them: error 802, "
        "cudaErrorSystemNotReady, while nvidia-smi shows all GPUs (NVIDIA, Fabric Manager user guide). Hosts without "
        "NVSwitch need none.",
    ),
)


def fabric_findings(fact: NvidiaDriver) -> Iterator[Finding]:
    """Only where the driver lists switches: the major and the node nvidia-nvswitchctl exist without any."""
    if fact.loaded is None or not fact.switches or FABRIC_MANAGER in fact.services:
        return
    yield Finding(
        code="nvidia.fabric_manager",
        subject=FABRIC_MANAGER,
        severity=Severity.HIGH,
        base_severity=Severity.CRITICAL,
        severity_reason="critical → high: its service does not run, but it may run in another way, as in a container",
        title=f"{len(fact.switches)} NVSwitch(es), and {FABRIC_MANAGER}.service does not run",
        observed=f"no process in {FABRIC_MANAGER}.service",
        expected="Fabric Manager of the driver's version running",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=fact.switches,
        origin="NVIDIA, Fabric Manager for NVIDIA NVSwitch Systems user guide",
        remedy=Remedy(
            now=f"systemctl start {FABRIC_MANAGER}; systemctl status {FABRIC_MANAGER}; nvidia-smi -q | grep -A2 Fabric",
            lasting=f"systemctl enable {FABRIC_MANAGER}; keep its package (Debian and Ubuntu: nvidia-fabricmanager) at "
            f"exactly {fact.loaded.version}, the driver's version: it refuses any other.",
            undo=f"systemctl disable --now {FABRIC_MANAGER}",
            cost="none; without it the GPUs compute nothing",
            risk=Risk.R1,
            restarts="programs that failed to initialise CUDA",
            verify_agent="host.nvidia_driver",
        ),
    )
