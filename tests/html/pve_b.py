"""The worked example: host pve-b on the morning after a kernel upgrade. Invented, and said to be."""

from __future__ import annotations

from gapline.orchestrator.model.finding import Confidence, Effect, Risk, Severity
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.run import LayerEntry, OutcomeEntry, Run, TargetEntry, TargetKind, Times, Verdict
from tests.html.runs import CONFIG, CONFIG_LINES, DIFF, evidence, finding, outcome, remedy, run, target

HOST, CT, TWIN, STOPPED, OTHER, AWAY = "pve-b", "pve-b/129", "pve-b/130", "pve-b/131", "pve-b/105", "gpu-07"

STALE = finding(
    CT,
    "devices.uvm_denied",
    "/dev/nvidia-uvm",
    severity=Severity.CRITICAL,
    title="CUDA cannot start: the allow-list names last week's nvidia-uvm major",
    observed="nvidia-uvm has major 511; container 129 may open majors 195 and 509",
    expected="the container may open 511:0 for reading and writing",
    effect=Effect.BREAKS,
    settled_by="",
    evidence=(
        evidence(HOST, "/proc/devices", 41, "511 nvidia-uvm"),
        evidence(CT, CONFIG, 8, CONFIG_LINES[7]),
        evidence(CT, "access /dev/nvidia-uvm", None, "/dev/nvidia-uvm: Operation not permitted"),
    ),
    remedy=remedy(
        now='`lxc-cgroup -n 129 devices.allow "c 511:* rwm"`\n'
        "It takes effect at once and is lost when the container stops.",
        lasting="Replace the two allow lines by device entries, as in the change beside; then `pct reboot 129`. "
        "Device entries are resolved at every start, so the next renumbering changes nothing.",
        undo="Put the two lines back and restart the container.",
        cost="The container restarts once: about 40 s without service, plus the time the model takes to load.",
        risk=Risk.R2,
        restarts="container 129, for the lasting form only",
        verify_agent="pair.device_chain",
        diff=DIFF,
    ),
)
NUMA = finding(
    HOST,
    "numa.balancing_on",
    "kernel.numa_balancing",
    title="Automatic NUMA balancing is on while two nodes have memory",
    observed="kernel.numa_balancing = 1, 2 nodes",
    expected="0 where the workload is bound to its nodes",
)
GOVERNOR = finding(
    HOST,
    "cpu.governor_dynamic",
    "policy0-127",
    severity=Severity.MEDIUM,
    title="All 128 CPU policies run the schedutil governor",
    observed="schedutil on 128 of 128 policies, boost on",
    expected="performance on machines that serve with low latency",
    effect=Effect.DOCUMENTED,
    settled_by="",
    origin="Linux, Documentation/admin-guide/pm/cpufreq.rst: schedutil follows the load it has seen",
    evidence=(
        evidence(HOST, "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", 1, "schedutil"),
        evidence(HOST, "/sys/devices/system/cpu/cpufreq/policy127/scaling_governor", 1, "schedutil"),
    ),
    remedy=remedy(
        now="`cpupower frequency-set -g performance`",
        lasting="A oneshot unit that runs the same command after `multi-user.target`.",
        undo="`cpupower frequency-set -g schedutil`",
        cost="More power when idle; a few watts per socket were seen elsewhere, not here.",
        verify_agent="host.cpu_frequency",
    ),
)
MEMLOCK = finding(
    CT,
    "limits.memlock",
    "RLIMIT_MEMLOCK",
    severity=Severity.INFO,
    base_severity=Severity.HIGH,
    severity_reason="the container's init holds CAP_IPC_LOCK in the initial user namespace, so the limit does not bind",
    title="Locked memory is limited to 62.9 GiB",
    observed="Max locked memory 67545120768 bytes",
    expected="unlimited, or a process that is exempt",
    evidence=(
        evidence(
            CT, "/proc/48213/limits", 9, "Max locked memory         67545120768          67545120768          bytes"
        ),
    ),
    remedy=remedy(
        now="Nothing is needed.", lasting="`lxc.prlimit.memlock: unlimited`", verify_agent="container.limits"
    ),
)
MRRS = tuple(
    finding(
        HOST,
        "pcie.read_request",
        address,
        severity=Severity.INFO,
        title="Maximum read request is 512 bytes",
        observed=f"512 bytes on {address}",
        expected="no fixed value: raise it only with a measured deficit and a comparison",
        settled_by="`gapline bench roof` at 512 and 4096 bytes",
        evidence=(
            evidence(
                HOST, f"/sys/bus/pci/devices/{address}/config", None, "DevCtl 0x2830: MaxReadReq 512, MaxPayload 256"
            ),
        ),
        remedy=remedy(
            now="Nothing, before it is measured.",
            lasting="Nothing, before it is measured.",
            undo="Nothing to undo.",
            cost="none",
            risk=Risk.R0,
            verify_agent="host.pcie",
        ),
    )
    for address in ("0000:01:00.0", "0000:41:00.0", "0000:81:00.0", "0000:c1:00.0")
)
WAIVED = finding(
    TWIN,
    "devices.literal_major",
    "c 509:* rwm",
    severity=Severity.LOW,
    title="The configuration names a dynamic major",
    observed="c 509:* rwm",
    expected="device entries (dev0: …)",
    confidence=Confidence.INFERRED,
    waived=True,
    evidence=(evidence(TWIN, "/etc/pve/lxc/130.conf", 9, "lxc.cgroup2.devices.allow: c 509:* rwm"),),
    remedy=remedy(verify_agent="pair.device_chain"),
)
DENIED = Problem(
    kind=ProblemKind.DENIED,
    detail="/proc/48213/root/usr/lib: permission denied",
    hint="Grant `sudo -n cat`, see `gapline plan --sudoers`.",
)
NOT_RUNNING = Problem(
    kind=ProblemKind.NOT_RUNNING, detail="container 131 is stopped", hint="Start it: `pct start 131`."
)
UNREACHED = Problem(
    kind=ProblemKind.UNREACHED,
    detail="gpu-07: no answer from 192.0.2.17:22 within 10 s",
    hint="Try `ssh -v gpu-07`; `gapline doctor gpu-07` names the step that fails.",
)
GPUS = [
    {"address": f"0000:{bus}:00.0", "speed_gts": 32.0, "width": 16, "max_read_request_bytes": 512, "numa_node": node}
    for bus, node in (("01", 0), ("41", 0), ("81", 1), ("c1", 1))
]


def _host() -> tuple[OutcomeEntry, ...]:
    cpu = {"driver": "amd-pstate-epp", "governors": ["schedutil"], "policies": 128, "boost": True, "max_mhz": 4121.0}
    driver = {
        "version": "580.95.05",
        "flavour": "open",
        "majors": {"nvidia": 195, "nvidia-uvm": 511, "nvidia-caps": 508},
    }
    return (
        outcome(
            HOST,
            "host.cpu_frequency",
            Status.FOUND,
            title="CPU frequency",
            reason="schedutil on 128 of 128 policies.",
            fact=cpu,
            findings=(GOVERNOR,),
        ),
        outcome(
            HOST,
            "host.numa_balancing",
            Status.FOUND,
            title="NUMA balancing",
            reason="Balancing is on, two nodes have memory.",
            fact={"mode": 1, "nodes": 2},
            findings=(NUMA,),
        ),
        outcome(
            HOST,
            "host.pcie",
            Status.FOUND,
            title="PCIe of each GPU",
            reason="4 GPUs at 32 GT/s x16.",
            fact={"gpus": GPUS},
            findings=MRRS,
        ),
        outcome(
            HOST,
            "host.driver",
            title="NVIDIA driver",
            reason="580.95.05, open modules, all nodes are there.",
            fact=driver,
        ),
        outcome(HOST, "host.communication", Status.NOT_APPLICABLE, layer=4, reason="No NVLink on these GPUs."),
    )


def _container(name: str, *, stale: bool) -> tuple[OutcomeEntry, ...]:
    config = {
        "privileged": stale,
        "cores": 32,
        "memory_mib": 262144,
        "dev_entries": [],
        "allow": ["c 195:* rwm", "c 509:* rwm"],
    }
    chain = {
        "nodes": 3,
        "policy": "allow-list" if stale else "deny-list",
        "denied": ["/dev/nvidia-uvm"] if stale else [],
    }
    return (
        outcome(name, "container.config", title="Container configuration", reason="Read and understood.", fact=config),
        outcome(
            name,
            "container.limits",
            Status.FOUND if stale else Status.PASSED,
            title="Resource limits",
            reason="Locked memory 62.9 GiB.",
            fact={"memlock_bytes": 67545120768, "nofile": 524288},
            findings=(MEMLOCK,) if stale else (),
        ),
        outcome(
            name,
            "container.devices",
            title="Device nodes, tested inside",
            reason="nvidiactl and nvidia0 open, nvidia-uvm refuses; the device chain says why."
            if stale
            else "All nodes open.",
            fact={"nodes": 3, "opened": 2 if stale else 3},
        ),
        outcome(
            name,
            "pair.device_chain",
            Status.FOUND,
            title="Device chain",
            reason="nvidia-uvm is 511 on the host; the container may open 509."
            if stale
            else "A deny-list blocks nothing here.",
            fact=chain,
            findings=(STALE,) if stale else (WAIVED,),
        ),
        outcome(
            name,
            "pair.driver",
            Status.UNKNOWN,
            title="Driver user space",
            reason="The libraries in the container could not be listed.",
            problem=DENIED,
            times=Times(planned=0.02, collected=None, judged=2.9),
        ),
    )


def _stopped() -> tuple[OutcomeEntry, ...]:
    agents = {
        "container.limits": "Resource limits",
        "container.devices": "Device nodes, tested inside",
        "pair.device_chain": "Device chain",
        "pair.driver": "Driver user space",
    }
    config = outcome(
        STOPPED,
        "container.config",
        title="Container configuration",
        reason="Read and understood.",
        fact={"privileged": False},
    )
    times = Times(planned=0.02, collected=None, judged=0.9)
    unknown = (
        outcome(STOPPED, agent, Status.UNKNOWN, title=title, reason="", problem=NOT_RUNNING, times=times)
        for agent, title in agents.items()
    )
    return (config, *unknown)


def _targets() -> tuple[TargetEntry, ...]:
    inside = "lxc-attach via pve-b"
    return (
        target(HOST, TargetKind.PROXMOX_HOST, labels=("rack-4",)),
        target(
            CT,
            TargetKind.LXC_CONTAINER,
            name="vllm-a",
            route=inside,
            reason="its configuration names major 195",
            connections=0,
            sessions=0,
        ),
        target(
            TWIN,
            TargetKind.LXC_CONTAINER,
            name="vllm-b",
            route=inside,
            reason="GPU process 51877 runs in it",
            connections=0,
            sessions=0,
        ),
        target(
            STOPPED,
            TargetKind.LXC_CONTAINER,
            name="comfy",
            route=inside,
            reason="it has dev0: /dev/nvidia2",
            problem=NOT_RUNNING,
            uptime_seconds=None,
            load=None,
            boot_id=None,
            connections=0,
            sessions=0,
        ),
        target(
            OTHER,
            TargetKind.LXC_CONTAINER,
            name="dns",
            route=inside,
            audited=False,
            reason="no NVIDIA node or major named",
            connections=0,
            sessions=0,
        ),
        target(
            AWAY,
            TargetKind.UNREACHED,
            audited=False,
            problem=UNREACHED,
            uptime_seconds=None,
            load=None,
            boot_id=None,
            privilege=None,
            clock_skew_seconds=None,
            connections=0,
            sessions=0,
        ),
    )


def pve_b(*, synthetic: bool = True) -> Run:
    """The whole run."""
    layers = (
        LayerEntry(layer=1, verdict=Verdict.NOT_TESTED, reason="No ceiling was computed in this run."),
        LayerEntry(
            layer=2, verdict=Verdict.SUSPECT, reason="2 medium findings on pve-b: CPU governor, NUMA balancing."
        ),
        LayerEntry(layer=3, verdict=Verdict.SUSPECT, reason="CUDA is blocked in pve-b/129 by the device policy."),
        LayerEntry(layer=4, verdict=Verdict.NOT_TESTED, reason="No benchmark of communication was run."),
        LayerEntry(layer=5, verdict=Verdict.NOT_TESTED, reason="No kernel was measured."),
    )
    outcomes = (*_host(), *_container(CT, stale=True), *_container(TWIN, stale=False), *_stopped())
    return run(_targets(), outcomes, layers, synthetic=synthetic)
