"""Judgements on the device rules of a container's configuration, as far as the file alone decides them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.agents.container import configuration_nodes
from gapline.agents.container.config_diff import Edit
from gapline.agents.container.configuration_fact import CGROUP1_RULE, Configuration
from gapline.agents.container.device_rule import Whole, parse_rule
from gapline.agents.container.policy_layers import BASE_DEVICE, policy_of, policy_steps
from gapline.agents.container.setting import Setting
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.problem import Problem, ProblemKind

AGENT_ID = "container.configuration"
_LXC = "LXC, src/lxc/cgroups/cgfsng.c and cgroup2_devices.c"

CODES = (
    Code(
        code="config.rule_skipped",
        title="LXC does not take a device rule as it is written",
        meaning="The grammar is `a`, or type, one blank, major:minor, one blank, access; or, for allow, a path, "
        "one blank, access. Anything else is one error in LXC's log, and the container runs without the rule.",
    ),
    Code(
        code="config.v1_rules",
        title="Device rules for cgroup v1 on a host that has v2 only",
        meaning="`lxc.cgroup.devices` keys are for the v1 device controller. On a host with cgroup v2 they do nothing; "
        "the keys for it begin with `lxc.cgroup2` (lxc.container.conf(5); Proxmox VE warns about them at the start).",
    ),
    Code(
        code="config.start_refused",
        title="A device rule that matches everything keeps the container from starting",
        meaning="LXC turns the rules into a small program. After a rule that matches every request its last "
        "instructions cannot be reached, the kernel refuses the program and LXC refuses to start. The way to say "
        "everything is a bare `a`.",
    ),
    Code(
        code="config.rules_wiped",
        title="A late `deny: a` takes back the rules before it",
        meaning="A bare `a` clears the list. Raw lines come after LXC's basic rules and Proxmox VE's dev[n] entries: "
        "a raw `deny: a` leaves only what stands below it, and not even /dev/null is allowed any more.",
    ),
)


def findings(fact: Configuration) -> Iterator[Finding]:
    """All findings of this part. Where cgroup v1 decides about devices, only its own rules count."""
    yield from _skipped(fact)
    if fact.v1_devices is not None:
        return
    if fact.unified:
        yield from _v1_rules(fact)
    policy = policy_of(fact, lambda _: None)
    if policy.refused is not None:
        yield _refused(fact, policy.refused.at)
    elif policy.allows(BASE_DEVICE) is False:
        yield from _wiped(fact)
    else:
        yield from configuration_nodes.findings(fact)


def unread(fact: Configuration) -> tuple[Problem, ...]:
    """Included files that could decide about a GPU node which is given to the container."""
    if not fact.gpu_nodes or fact.v1_devices is not None:
        return ()
    return tuple(
        Problem(
            kind=ProblemKind.UNSEEN,
            detail=f"{at.source}:{at.line}: the included file was not read, and it can hold rules: {at.text.strip()}",
            hint="The access test inside the running container decides: see pair.device_chain.",
        )
        for at in policy_of(fact, lambda _: None).unread
    )


def _skipped(fact: Configuration) -> Iterator[Finding]:
    for rule in fact.device_rules():
        if rule.value and parse_rule(rule.value, allow=rule.key.endswith("allow")) is None:
            yield _skipped_rule(fact, rule)


def _skipped_rule(fact: Configuration, rule: Setting) -> Finding:
    meant = _as_meant(rule)
    line = fact.raw_line(rule.key, meant)
    return Finding(
        code="config.rule_skipped",
        subject=rule.value[:80],
        severity=Severity.MEDIUM,
        title=f"LXC does not take the device rule `{rule.value[:80]}`",
        observed=rule.at.text,
        expected=line if meant else "`a`, `c MAJOR:MINOR rwm`, or for allow `/dev/NODE rw`",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=(rule.at,),
        origin="LXC, src/lxc/cgroups/cgfsng.c (device_cgroup_rule_parse)",
        remedy=Remedy(
            now=f"Correct line {rule.line} of {fact.path}.",
            lasting="The rules are read at every start of the container.",
            undo="Put the old line back.",
            cost="The rule takes effect, with what it allows.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
            diff=fact.diff(Edit(rule.line, remove=True, add=(line,) if meant else ())),
        ),
    )


def _as_meant(rule: Setting) -> str:
    match = re.fullmatch(r"([abc])?\s*(\d+|\*)(?::(\d+|\*))?[\s,:]*([rwm]*)", rule.value.strip())
    if match is None:
        return ""
    return f"{match[1] or 'c'} {match[2]}:{match[3] or '*'} {match[4] or 'rwm'}"


def _v1_rules(fact: Configuration) -> Iterator[Finding]:
    old = [s for s in fact.raw if CGROUP1_RULE.fullmatch(s.key)]
    if not old:
        return
    present = {(s.key, s.value) for s in fact.device_rules()}
    edits = (_as_v2(fact, s, present) for s in old)
    missing = any((_v2_key(s), s.value) not in present for s in old)
    yield Finding(
        code="config.v1_rules",
        subject="lxc.cgroup.devices",
        severity=Severity.MEDIUM if missing else Severity.LOW,
        title=f"{len(old)} device rules are for cgroup v1 and do nothing on this host",
        observed="the host has cgroup v2 only",
        expected="`lxc.cgroup2.devices` keys",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(s.at for s in old),
        origin="lxc.container.conf(5), control groups",
        remedy=Remedy(
            now=f"Rename the keys in {fact.path}; lines that are there for v2 already can go.",
            lasting="The rules are read at every start of the container.",
            undo="Put the old lines back.",
            cost="None.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
            diff=fact.diff(*edits),
        ),
    )


def _v2_key(setting: Setting) -> str:
    return setting.key.replace("lxc.cgroup.", "lxc.cgroup2.")


def _as_v2(fact: Configuration, setting: Setting, present: set[tuple[str, str]]) -> Edit:
    known = (_v2_key(setting), setting.value) in present
    return Edit(setting.line, remove=True, add=() if known else (fact.raw_line(_v2_key(setting), setting.value),))


def _refused(fact: Configuration, at: Evidence | None) -> Finding:
    rule = next((s for s in fact.device_rules() if s.at == at), None)
    runs = fact.uid_map is not None
    return Finding(
        code="config.start_refused",
        subject="lxc.cgroup2.devices",
        severity=Severity.HIGH if runs else Severity.CRITICAL,
        base_severity=Severity.CRITICAL,
        severity_reason="it still runs with the rules of its last start" if runs else "",
        title="A device rule matches everything, and the container cannot start with it",
        observed=at.text if at else "a rule that matches every device and access",
        expected="a bare `a` where everything is meant",
        effect=Effect.BREAKS,
        confidence=Confidence.INFERRED,
        evidence=(at,) if at else (),
        origin=f"{_LXC}; the kernel's verifier answers `unreachable insn`",
        remedy=Remedy(
            now=f"Replace the value by `a` in {fact.path}, or better by a rule for each node.",
            lasting="The rules are read at every start of the container.",
            undo="Put the old line back.",
            cost="With `a` the container may use every device; rules for single nodes keep that closed.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
            diff=fact.diff(Edit(rule.line, remove=True, add=(fact.raw_line(rule.key, "a"),))) if rule else "",
        ),
    )


def _wiped(fact: Configuration) -> Iterator[Finding]:
    late = [step.at for step in policy_steps(fact) if isinstance(step, Whole) and not step.allow and step.at]
    if not late:
        return
    entries: Mapping[str, Evidence] = {s.key: s.at for s, _ in fact.device_entries()}
    lost = f"the basic rules{' and those of ' + ', '.join(entries) if entries else ''}"
    yield Finding(
        code="config.rules_wiped",
        subject="lxc.cgroup2.devices.deny a",
        severity=Severity.CRITICAL,
        title=f"`deny a` on line {late[-1].line} takes back {lost}",
        observed=late[-1].text,
        expected="no `deny a` among the raw lines: the basic rules begin with it",
        effect=Effect.BREAKS,
        confidence=Confidence.INFERRED,
        evidence=(late[-1], *entries.values()),
        origin=_LXC,
        remedy=Remedy(
            now="Remove the line and restart the container. What runs meanwhile gets single devices back with "
            f'`lxc-cgroup -n {fact.name} devices.allow "c 1:3 rwm"`.',
            lasting=f"Keep it out of {fact.path}; dev[n] entries and rules by path are enough for GPUs.",
            undo="Put the line back.",
            cost="None: the basic rules are those of every container.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
            diff=fact.diff(*(Edit(at.line or 1, remove=True) for at in late)),
        ),
    )
