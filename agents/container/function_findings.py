"""Judgements on the calls that were tried in a container."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.function_test import Functions, Tried
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.functions"
NUMA_CALLS = ("get_mempolicy", "set_mempolicy", "mbind", "move_pages")
_REFUSED = frozenset({"EPERM", "EACCES"})  # not ENOSYS: a kernel without NUMA has no such call

CODES = (
    Code(
        code="functions.gpu_open",
        title="A GPU that is in use cannot be opened once more",
        meaning="A process of the container holds the node, and still the driver refuses the next one: the GPU was "
        "lost or is being reset, or the device policy changed since. The engine will not start again.",
    ),
    Code(
        code="functions.numa_denied",
        title="NUMA policies cannot be set in the container",
        meaning="A seccomp filter refuses the calls, as Docker's default one does without CAP_SYS_NICE. Engines then "
        "start without their binding, and numactl fails.",
    ),
    Code(
        code="functions.memfd_denied",
        title="Anonymous memory files cannot be created",
        meaning="memfd_create is refused. Memory that processes of one engine share by descriptor then cannot be had.",
    ),
    Code(
        code="functions.pidfd_denied",
        title="A process may not take a descriptor of another",
        meaning="pidfd_getfd is refused, by which PyTorch's symmetric memory hands GPU memory to its peers; it falls "
        "back to slower paths.",
    ),
)


def function_findings(fact: Functions) -> Iterator[Finding]:
    """All of them."""
    for node in fact.opened:
        if node.result != "0":
            yield _gpu(node)
    refused = [one for name in NUMA_CALLS if (one := fact.call(name)) and one.result in _REFUSED]
    if refused and fact.numa_nodes != 1:
        yield _numa(refused)
    memfd, pidfd = fact.call("memfd_create"), fact.call("pidfd_getfd")
    if memfd is not None and memfd.result != "0":
        yield _memfd(memfd)
    if pidfd is not None and pidfd.result in _REFUSED:
        yield _pidfd(pidfd)


def _gpu(node: Tried) -> Finding:
    return Finding(
        code="functions.gpu_open",
        subject=node.name,
        severity=Severity.HIGH,
        title=f"{node.name} is in use and cannot be opened: {node.result}",
        observed=f"open: {node.result}",
        expected="open succeeds",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(node.evidence,),
        remedy=Remedy(
            now="See the host's kernel log for that GPU (gapline rerun host.kernel_log) and the container's device "
            "rules (gapline rerun pair.device_chain); EPERM means the rules, EIO or ENODEV the GPU.",
            lasting="As those agents say.",
            undo="Nothing was changed.",
            cost="None for looking.",
            risk=Risk.R0,
            restarts="nothing",
            verify_agent=AGENT_ID,
        ),
    )


def _numa(refused: list[Tried]) -> Finding:
    return Finding(
        code="functions.numa_denied",
        subject="numa",
        severity=Severity.MEDIUM,
        title=f"{', '.join(one.name for one in refused)} are refused in the container",
        observed=", ".join(f"{one.name}: {one.result}" for one in refused),
        expected="0",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(one.evidence for one in refused),
        origin="Docker documentation, Seccomp security profiles: mbind, set_mempolicy and others need CAP_SYS_NICE",
        remedy=_filter("Docker: `--cap-add SYS_NICE`."),
    )


def _memfd(call: Tried) -> Finding:
    return Finding(
        code="functions.memfd_denied",
        subject="memfd_create",
        severity=Severity.MEDIUM,
        title=f"memfd_create ends with {call.result} in the container",
        observed=f"memfd_create: {call.result}",
        expected="0",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(call.evidence,),
        settled_by="starting the engine with several GPUs, and `strace -f -e memfd_create` where that fails",
        remedy=_filter("No common profile refuses this call: look for one of your own."),
    )


def _pidfd(call: Tried) -> Finding:
    return Finding(
        code="functions.pidfd_denied",
        subject="pidfd_getfd",
        severity=Severity.LOW,
        title=f"pidfd_getfd ends with {call.result} in the container",
        observed=f"pidfd_getfd: {call.result}",
        expected="0",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(call.evidence,),
        settled_by="a decode benchmark with and without the engine's symmetric memory (vLLM: "
        "VLLM_ALLREDUCE_USE_SYMM_MEM)",
        remedy=_filter("Docker: `--cap-add SYS_PTRACE`."),
    )


def _filter(docker: str) -> Remedy:
    return Remedy(
        now="Find the filter: `lxc.seccomp.profile` in the container's configuration, or the profile of an outer "
        f"container. {docker} The profiles of Proxmox VE and LXC let this call through.",
        lasting="Allow the call in that profile (a line with its name in an allow list), and restart the container.",
        undo="Put the profile back and restart the container.",
        cost="The call becomes available to every process of the container.",
        risk=Risk.R4,
        restarts="the container",
        verify_agent=AGENT_ID,
    )
