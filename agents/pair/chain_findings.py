"""Judgements on needed nodes: missing, stale, denied, failing, or open only until the next start."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.access_test import Opening
from gapline.agents.container.configuration_fact import Configuration
from gapline.agents.container.configuration_nodes import lasting_fix
from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.agents.pair.chain_link import CONTROL, GPU, UVM, ChainLink, DeviceChain
from gapline.agents.pair.literal_rule import LiteralRule, cause_of, in_place
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "pair.device_chain"
_DENIED = {CONTROL: "devices.ctl_denied", UVM: "devices.uvm_denied"}
_SYMPTOM = {CONTROL: "neither nvidia-smi nor CUDA works", UVM: "nvidia-smi works and CUDA does not"}
_ORIGIN = "Linux include/linux/device_cgroup.h and fs/char_dev.c; LXC, src/lxc/cgroups/cgroup2_devices.c"

CODES = (
    Code(
        code="devices.uvm_denied",
        title="The container may not open nvidia-uvm",
        meaning="CUDA opens /dev/nvidia-uvm first of all; NVML does not. So nvidia-smi shows healthy GPUs while every "
        "CUDA program fails. The major of nvidia-uvm is given out in the order in which drivers load, so a rule with a "
        "number is right until a kernel update, a new driver or another load order moves it.",
    ),
    Code(
        code="devices.ctl_denied",
        title="The container may not open nvidiactl",
        meaning="Every use of the driver begins with /dev/nvidiactl (195:255), NVML's too.",
    ),
    Code(
        code="devices.gpu_denied",
        title="The container may not open a GPU that it was given",
        meaning="The GPU's node is in the container, but the device policy refuses its numbers; the GPU is not usable.",
    ),
    Code(
        code="devices.node_missing",
        title="A node that CUDA needs is not in the container",
        meaning="nvidiactl, nvidia-uvm and at least one GPU must be there. The host makes the nodes on demand, so that "
        "an `optional` bind mount of a node that did not exist yet leaves the container without it.",
    ),
    Code(
        code="devices.node_stale",
        title="A node in the container has numbers that the driver no longer has",
        meaning="The node was made when the driver had another major: by mknod in the container, or at its start "
        "before the driver was loaded again. It leads nowhere (ENXIO) or to another driver.",
    ),
    Code(
        code="devices.open_fails",
        title="Opening a node fails although it is allowed",
        meaning="The device policy and the mode let the container in, and the driver answers with an error: the GPU is "
        "lost, or the driver did not come up.",
    ),
    Code(
        code="devices.denied_at_next_start",
        title="The node can be used now, but not after the next start",
        meaning="The running policy was changed by hand (`lxc-cgroup`), or the configuration was edited after the "
        "start: by the configuration as it is now, the next start takes the node away.",
    ),
)


def findings(chain: DeviceChain, configuration: Configuration, driver: NvidiaDriver) -> Iterator[Finding]:
    """At most one finding for each needed node, GPUs that are denied together in one."""
    gpus = [link for link in chain.links if GPU.fullmatch(link.path)]
    if chain.running:
        yield from _missing(chain, gpus)
    for link in chain.links:
        if link.major is None:
            continue
        if chain.running and link.stale:
            yield _stale(link, link.major.number, configuration, driver)
        elif link.denied and link not in gpus and _is_there(chain, configuration, link):
            yield _denied([link], configuration, driver)
        elif _fails(link):
            yield _failing(link)
        elif _until_next_start(link, configuration):
            yield _next_start(link, configuration, driver)
    denied = [link for link in gpus if link.denied and not link.stale and _is_there(chain, configuration, link)]
    if denied:
        yield _denied(denied, configuration, driver)


def _is_there(chain: DeviceChain, configuration: Configuration, link: ChainLink) -> bool:
    """In the container, or to be there at its next start; what is missing is missing, not denied."""
    if chain.running:
        return link.inside is not None
    return any(node.path == link.path for node in configuration.gpu_nodes)


def _missing(chain: DeviceChain, gpus: list[ChainLink]) -> Iterator[Finding]:
    lost = [link for link in chain.links if link.inside is None and link not in gpus]
    if all(link.inside is None for link in gpus):
        lost.extend(gpus[:1])
        if not gpus:
            yield _missing_node("a GPU", None, chain)
    for link in lost:
        yield _missing_node(link.path, link, chain)


def _missing_node(path: str, link: ChainLink | None, chain: DeviceChain) -> Finding:
    host = link.host if link else None
    named = path if link else "/dev/nvidia0"
    evidence = [host.evidence] if host else []
    evidence += [other.inside.evidence for other in chain.links if other.inside][:2]
    evidence += [other.major.evidence for other in chain.links if other.major and other is (link or chain.links[0])]
    return Finding(
        code="devices.node_missing",
        subject=path,
        severity=Severity.CRITICAL,
        title=f"{path} is missing in the container" + ("" if host or link is None else ", and on the host"),
        observed="not in the container" + (", on the host it is there" if host else ""),
        expected=f"{named} in the container",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=tuple(evidence),
        origin="NVIDIA driver README and open-gpu-kernel-modules: nodes are made by user space (nvidia-modprobe)",
        remedy=Remedy(
            now=("" if host else "On the host make the nodes first: `nvidia-modprobe -c0 -u`. ")
            + "Restart the container if its configuration names the node; otherwise add it.",
            lasting=f"Proxmox VE 8.1 and later: `pct set ID -devN {named},mode=0666`. Elsewhere: `lxc.mount.entry = "
            f"{named} {named[1:]} none bind,create=file` and `lxc.cgroup2.devices.allow = {named} rw`. Let a unit that "
            "runs nvidia-modprobe come before the containers (Before=pve-guests.service or lxc.service).",
            undo="Remove the entry.",
            cost="The container's downtime.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


def _stale(link: ChainLink, major: int, configuration: Configuration, driver: NvidiaDriver) -> Finding:
    node = link.inside
    numbers = f"{node.major}:{node.minor}" if node else "?"
    owners = driver.owners(node.major) if node else ()
    started = tuple(device.at for device in configuration.started if device.path == link.path)
    return Finding(
        code="devices.node_stale",
        subject=link.path,
        severity=Severity.CRITICAL,
        title=f"{link.path} in the container is {numbers}, the driver has {major}:{link.minor}",
        observed=f"{numbers}, which belongs to {' and '.join(owners) or 'nobody'}",
        expected=f"{major}:{link.minor}",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(
            *((node.evidence,) if node else ()),
            *((link.major.evidence,) if link.major else ()),
            *started,
        ),
        remedy=Remedy(
            now="Restart the container. If the node was made in it with mknod, remove it there first.",
            lasting=lasting_fix(configuration, [link.path]),
            undo="Nothing to undo.",
            cost="The container's downtime.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


def _denied(links: list[ChainLink], configuration: Configuration, driver: NvidiaDriver) -> Finding:
    first = links[0]
    paths = [link.path for link in links]
    major = first.major.number if first.major else 0
    cause = cause_of(first, configuration, driver)
    tests = tuple(link.access.evidence for link in links if link.access and link.tried)
    rules = tuple(s.at for s in configuration.device_rules())
    ready = first.allowed is True
    return Finding(
        code=_DENIED.get(first.path, "devices.gpu_denied"),
        subject=first.path if first.path in _DENIED else "/dev/nvidia*",
        severity=Severity.CRITICAL,
        title=_title(paths, major, cause, ready=ready),
        observed=_observed(first, cause),
        expected=f"access to {first.path}, character device {major}:{first.minor}",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED if tests else Confidence.INFERRED,
        evidence=(
            *((first.major.evidence,) if first.major else ()),
            *((cause.setting.at,) if cause else rules),
            *tests,
        ),
        origin=_ORIGIN,
        remedy=_allow(links, major, cause, configuration, ready=ready),
    )


def _title(paths: list[str], major: int, cause: LiteralRule | None, *, ready: bool) -> str:
    what = f"{', '.join(paths)} {'is' if len(paths) == 1 else 'are'} denied to the container"
    symptom = _SYMPTOM.get(paths[0], "it cannot use them" if len(paths) > 1 else "it cannot use it")
    if ready:
        why = "the configuration allows it, but is not in force yet"
    elif cause:
        why = f"the driver has major {major}, the configuration allows {cause.rule.major}"
    else:
        why = f"no rule allows major {major}"
    return f"{what}: {why}; {symptom}"


def _observed(link: ChainLink, cause: LiteralRule | None) -> str:
    if link.access is not None and link.access.opening is not None:
        return f"opening it inside fails with {link.access.opening.value}"
    if link.tried:
        return "the container's root may not read and write it, although its mode lets everybody"
    if cause:
        return f"the rule allows major {cause.rule.major} and no other rule covers the node"
    return "no rule of the configuration covers the node"


def _allow(
    links: list[ChainLink], major: int, cause: LiteralRule | None, configuration: Configuration, *, ready: bool
) -> Remedy:
    paths = [link.path for link in links]
    numbers = [f"c {major}:{'*' if link.path == UVM else link.minor} rwm" for link in links]
    live, back = (
        "; ".join(f'lxc-cgroup -n {configuration.name} devices.{word} "{number}"' for number in numbers)
        for word in ("allow", "deny")
    )
    return Remedy(
        now=f"As root on the host, at once and without a restart: `{live}`. It is lost at the next start.",
        lasting="Restart the container: its configuration allows the node already."
        if ready
        else lasting_fix(configuration, paths),
        undo=f"`{back}` live; put the old line back in the file.",
        cost="None: the container gets exactly the nodes it was given.",
        risk=Risk.R2,
        restarts="nothing for the live repair; the container for the lasting one",
        verify_agent=AGENT_ID,
        diff=""
        if ready or configuration.v1_devices is not None
        else configuration.diff(in_place(configuration, paths, cause)),
    )


def _fails(link: ChainLink) -> bool:
    return link.access is not None and link.access.opening in (Opening.ENXIO, Opening.ENODEV, Opening.EIO)


def _failing(link: ChainLink) -> Finding:
    opening = link.access.opening if link.access else None
    return Finding(
        code="devices.open_fails",
        subject=link.path,
        severity=Severity.HIGH,
        title=f"Opening {link.path} in the container fails with {opening.value if opening else '?'}",
        observed=f"{opening.value if opening else '?'}, with the driver's numbers and an open policy",
        expected="it opens",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=tuple(e.evidence for e in (link.access, link.major) if e),
        remedy=Remedy(
            now="Look for NVRM and Xid lines in the host's kernel log; the cause lies with the driver or the GPU.",
            lasting="Depends on what the log says; see host.nvidia_driver.",
            undo="Nothing to undo.",
            cost="None for looking.",
            risk=Risk.R0,
            restarts="nothing",
            verify_agent=AGENT_ID,
        ),
    )


def _until_next_start(link: ChainLink, configuration: Configuration) -> bool:
    """Start hooks can add rules that no file shows, so nothing is said where there are any."""
    hooks = any(s.key.startswith("lxc.hook.") for s in configuration.raw)
    return link.tried and not link.denied and link.allowed is False and not hooks and link.inside is not None


def _next_start(link: ChainLink, configuration: Configuration, driver: NvidiaDriver) -> Finding:
    cause = cause_of(link, configuration, driver)
    path_rule = configuration.raw_line("lxc.cgroup2.devices.allow", f"{link.path} rw")
    on_v1 = configuration.v1_devices is not None
    return Finding(
        code="devices.denied_at_next_start",
        subject=link.path,
        severity=Severity.HIGH,
        title=f"{link.path} can be used now, but the configuration denies it from the next start on",
        observed="the access test succeeds, and no rule of the configuration covers the node",
        expected=f"`{path_rule}`, or a dev[n] entry",
        effect=Effect.BREAKS,
        confidence=Confidence.INFERRED,
        evidence=(
            *((link.major.evidence,) if link.major else ()),
            *((cause.setting.at,) if cause else tuple(s.at for s in configuration.device_rules())),
            *((link.access.evidence,) if link.access else ()),
        ),
        remedy=Remedy(
            now="Nothing is broken now.",
            lasting=lasting_fix(configuration, [link.path]),
            undo="Put the old line back.",
            cost="None.",
            risk=Risk.R1,
            restarts="nothing now; it applies at the next start",
            verify_agent=AGENT_ID,
            diff="" if on_v1 else configuration.diff(in_place(configuration, [link.path], cause)),
        ),
    )
