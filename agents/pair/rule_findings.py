"""Judgements on rules with numbers: right only until the next boot, for a foreign driver, or for nothing."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.config_diff import Edit
from gapline.agents.container.configuration_fact import NVIDIA_MAJOR, Configuration, Form
from gapline.agents.container.configuration_nodes import DYNAMIC_MAJORS, lasting_fix
from gapline.agents.container.device_policy import DevicePolicy
from gapline.agents.container.node_fact import DeviceNodes
from gapline.agents.host.nvidia.fact import NvidiaDriver
from gapline.agents.pair.chain_link import UVM, DeviceChain
from gapline.agents.pair.literal_rule import LiteralRule, cause_of, in_place, literal_rules
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "pair.device_chain"
_CAPS = "/dev/nvidia-caps/nvidia-cap"
_FIRST_MIG_CAP = 3  # 1 and 2 are MIG's configuration and monitor, which exist without MIG (nvidia-caps/mig-minors)
_LOAD_ORDER = "Linux fs/char_dev.c, find_dynamic_major: the first free of 254…234, then of 511…384"

CODES = (
    Code(
        code="devices.literal_major",
        title="The rule for nvidia-uvm is right today only",
        meaning="The rule names the major by its number. The kernel gives it out in the order in which drivers load, "
        "so any reboot can move it, and then CUDA fails in the container while nvidia-smi works.",
    ),
    Code(
        code="devices.over_permission",
        title="A rule opens another driver's devices to the container",
        meaning="The major that the rule names belongs to a driver now that has nothing to do with the container's "
        "GPUs: a number that was right once, or a minor or a size that was taken for a major from `ls -l`.",
    ),
    Code(
        code="devices.superfluous_rule",
        title="A rule allows a major that nobody has",
        meaning="It has no use today, and the next driver that loads can get that major. Typical sources are minors "
        "254 and 255 of major 195 and the size column of `ls -l`.",
    ),
    Code(
        code="devices.unused_rule",
        title="A rule allows NVIDIA nodes that the container was not given",
        meaning="nvidia-caps is needed with MIG only, nvlink and nvswitch are for the host's services. Harmless.",
    ),
    Code(
        code="devices.caps_denied",
        title="The container may not read the MIG nodes that it was given",
        meaning="With MIG, a GPU instance can be used only by who can read its nodes below /dev/nvidia-caps, whose "
        "major is given out at load time; NVML answers 'Insufficient Permissions' (nvidia-container-toolkit issue "
        "1740).",
    ),
)


def findings(
    chain: DeviceChain,
    configuration: Configuration,
    driver: NvidiaDriver,
    nodes: DeviceNodes | None,
    policy: DevicePolicy,
) -> Iterator[Finding]:
    """All findings on rules. In a deny-list allow rules are skipped, so there they neither help nor harm."""
    yield from _caps(nodes, configuration, driver)
    if configuration.v1_devices is not None or not policy.allow_list or policy.unread:
        return
    uvm = next((link for link in chain.links if link.path == UVM), None)
    cause = cause_of(uvm, configuration, driver) if uvm and uvm.major else None
    active = {rule.at for rule in policy.active if rule.allow}
    rules = [rule for rule in literal_rules(configuration) if rule.setting.at in active]
    yield from _latent(chain, configuration, rules)
    for rule in rules:
        yield from _purpose(rule, configuration, driver, cause)


def _latent(chain: DeviceChain, configuration: Configuration, rules: list[LiteralRule]) -> Iterator[Finding]:
    link = next((link for link in chain.links if link.path == UVM), None)
    if link is None or link.major is None or link.denied or link.allowed is not True:
        return
    numbered = [rule for rule in rules if rule.major == link.major.number]
    if not numbered or _by_path(configuration):
        return
    line = configuration.raw_line("lxc.cgroup2.devices.allow", f"{UVM} rw")
    edits = (in_place(configuration, [UVM], numbered[0]), *(Edit(r.setting.line, remove=True) for r in numbered[1:]))
    yield Finding(
        code="devices.literal_major",
        subject=UVM,
        severity=Severity.MEDIUM,
        title=f"The rule for nvidia-uvm names its present major {link.major.number}: it breaks when the major moves",
        observed=numbered[0].setting.at.text,
        expected=f"a dev[n] entry, or `{line}`",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=(numbered[0].setting.at, link.major.evidence),
        origin=_LOAD_ORDER,
        remedy=Remedy(
            now="Nothing is broken now; change it before the next reboot of the host.",
            lasting=lasting_fix(configuration, [UVM]),
            undo="Put the old line back.",
            cost="None.",
            risk=Risk.R2,
            restarts="nothing now; it applies at the container's next start",
            verify_agent=AGENT_ID,
            diff=configuration.diff(*edits),
        ),
    )


def _by_path(configuration: Configuration) -> bool:
    """The node has a rule that never goes stale besides."""
    rules = (s.value.split()[0] for s in configuration.device_rules() if s.value and s.key.endswith("allow"))
    return UVM in rules or any(node.allowed and node.host_path == UVM for node in configuration.gpu_nodes)


def _purpose(
    rule: LiteralRule, configuration: Configuration, driver: NvidiaDriver, cause: LiteralRule | None
) -> Iterator[Finding]:
    """What is wrong with a rule besides being the cause of a denial, which is said there."""
    owners = driver.owners(rule.major)
    foreign = not any(owner.startswith("nvidia") for owner in owners)
    if cause is not None and cause.setting.at == rule.setting.at and not (owners and foreign):
        return
    if rule.major == NVIDIA_MAJOR or rule.serves(configuration, driver):
        return
    if not owners:
        yield _superfluous(rule, configuration)
    elif not foreign:
        if "nvidia-uvm" not in owners:
            yield _unused(rule, configuration, driver)
    elif rule.major in DYNAMIC_MAJORS and not _wanted(configuration, owners):
        yield _foreign(rule, configuration, driver, cause)


def _wanted(configuration: Configuration, owners: tuple[str, ...]) -> bool:
    """The container was given a node of that driver: it is named in a path, as in /dev/kfd or /dev/hidraw0."""
    return any(owner in node.host_path for owner in owners for node in configuration.nodes())


def _foreign(
    rule: LiteralRule, configuration: Configuration, driver: NvidiaDriver, cause: LiteralRule | None
) -> Finding:
    meant = in_place(configuration, [UVM], rule) if cause is not None and cause.setting.at == rule.setting.at else None
    owners = " and ".join(driver.owners(rule.major))
    held = tuple(major.evidence for major in driver.char_majors if major.number == rule.major)
    return Finding(
        code="devices.over_permission",
        subject=rule.setting.value,
        severity=Severity.MEDIUM,
        title=f"A rule opens the devices of {owners} (major {rule.major}) to the container",
        observed=rule.setting.at.text,
        expected="rules for the container's own nodes only",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=(rule.setting.at, *held),
        origin=_LOAD_ORDER,
        remedy=_remove(rule, configuration, meant),
    )


def _superfluous(rule: LiteralRule, configuration: Configuration) -> Finding:
    return Finding(
        code="devices.superfluous_rule",
        subject=rule.setting.value,
        severity=Severity.LOW,
        title=f"A rule allows major {rule.major}, which no driver of this host has",
        observed=rule.setting.at.text,
        expected="rules for majors in /proc/devices, best by path",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(rule.setting.at,),
        origin="Linux fs/char_dev.c: /proc/devices lists every major that is held",
        remedy=_remove(rule, configuration),
    )


def _unused(rule: LiteralRule, configuration: Configuration, driver: NvidiaDriver) -> Finding:
    owners = " and ".join(driver.owners(rule.major))
    return Finding(
        code="devices.unused_rule",
        subject=rule.setting.value,
        severity=Severity.INFO,
        title=f"A rule allows {owners} (major {rule.major}), of which the container was given no node",
        observed=rule.setting.at.text,
        expected="the rule together with the nodes, or neither",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(rule.setting.at, *(m.evidence for m in driver.char_majors if m.number == rule.major)),
        origin="NVIDIA open-gpu-kernel-modules: nvidia-caps carries MIG and NVLink capabilities",
        remedy=_remove(rule, configuration),
    )


def _remove(rule: LiteralRule, configuration: Configuration, instead: Edit | None = None) -> Remedy:
    value = rule.setting.value
    return Remedy(
        now=f'`lxc-cgroup -n {configuration.name} devices.deny "{value}"` takes it from the running container.',
        lasting=f"{'Replace' if instead else 'Remove'} line {rule.setting.line} of {configuration.path}: see the diff.",
        undo=f'`lxc-cgroup -n {configuration.name} devices.allow "{value}"`, and put the line back.',
        cost="None.",
        risk=Risk.R1,
        restarts="nothing",
        verify_agent=AGENT_ID,
        diff=configuration.diff(instead or Edit(rule.setting.line, remove=True)),
    )


def _caps(nodes: DeviceNodes | None, configuration: Configuration, driver: NvidiaDriver) -> Iterator[Finding]:
    """MIG nodes whose mode lets everybody read them, and which the container's root cannot read all the same."""
    kept = [
        (node, access)
        for node in (nodes.nodes if nodes else ())
        if node.path.startswith(_CAPS)
        and node.permissions & 0o004
        and node.path.removeprefix(_CAPS).isdecimal()
        and int(node.path.removeprefix(_CAPS)) >= _FIRST_MIG_CAP
        and (access := nodes.access(node.path) if nodes else None)
        and access.readable is False
    ]
    major = driver.majors.get("nvidia-caps")
    if not kept or major is None:
        return
    folder = "/dev/nvidia-caps"
    rules = tuple(configuration.raw_line("lxc.cgroup2.devices.allow", f"{node.path} r") for node, _ in kept)
    entries = " ".join(f"-devN {node.path}" for node, _ in kept)
    yield Finding(
        code="devices.caps_denied",
        subject=folder,
        severity=Severity.HIGH,
        title=f"{len(kept)} MIG nodes below {folder} are denied to the container",
        observed=", ".join(node.path.rpartition("/")[2] for node, _ in kept) + " cannot be read by its root",
        expected=f"read access to major {major.number}",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(
            major.evidence,
            *(access.evidence for _, access in kept),
            *(s.at for s in configuration.device_rules()),
        ),
        remedy=Remedy(
            now="At once, until the next start: "
            f'`lxc-cgroup -n {configuration.name} devices.allow "c {major.number}:* r"`.',
            lasting=f"Proxmox VE 8.1 and later: `pct set {configuration.name} {entries}`. Elsewhere apply the diff."
            if configuration.form is Form.PROXMOX
            else "Apply the diff: rules by path are looked up at every start.",
            undo="Remove the rules.",
            cost="The container can use these MIG instances, as was meant.",
            risk=Risk.R2,
            restarts="nothing for the live repair; the container for the lasting one",
            verify_agent=AGENT_ID,
            diff=configuration.diff(Edit(configuration.line_after_rules(), add=rules)),
        ),
    )
