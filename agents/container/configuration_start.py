"""Judgements on what a container's configuration makes of its start, its id maps and its confinement."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.config_diff import Edit
from gapline.agents.container.configuration_fact import Configuration, Form
from gapline.agents.container.setting import Setting
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.configuration"
_PVE = "pve-container, src/PVE/LXC/Config.pm and src/PVE/LXC.pm"
_DEFAULT_RANGE = "0 100000 65536"  # Debian's and Proxmox VE's /etc/subuid and /etc/subgid give root 100000:65536

CODES = (
    Code(
        code="config.idmap_incomplete",
        title="The id map has no range for users or for groups",
        meaning="LXC writes uid_map and gid_map from the `lxc.idmap` lines. When lines of one kind are there and the "
        "other kind is missing, the new user name space has no such ids and the container does not start. "
        "Custom lines replace Proxmox VE's default map as a whole: give both kinds (pve-container, LXC.pm).",
    ),
    Code(
        code="config.privilege_differs",
        title="The container runs with another privilege than its configuration says",
        meaning="The id map of the running init is the truth; the file was changed after the start. Device rules, "
        "limits and file owners follow the map until the next start and the file after it.",
    ),
    Code(
        code="config.pending",
        title="Changes wait for a restart of the container",
        meaning="Proxmox VE keeps what it could not apply to the running container under [pve:pending]. "
        "Until the restart the old values are in force (pve-container, `vmconfig_apply_pending`).",
    ),
    Code(
        code="config.line_ignored",
        title="A line of the configuration is no setting",
        meaning="Proxmox VE warns about such a line in its log and drops it when it writes the file again "
        "(`parse_pct_config`); LXC refuses to load the file.",
    ),
    Code(
        code="config.unconfined",
        title="No AppArmor profile, no dropped capability and no device rule",
        meaning="Together these three settings take away what separates a privileged container from its host. They "
        "come from recipes for nested Docker; a GPU needs none of them.",
    ),
)


def findings(fact: Configuration) -> Iterator[Finding]:
    """All findings of this part."""
    yield from _idmap(fact)
    yield from _privilege(fact)
    yield from _pending(fact)
    yield from _ignored(fact)
    yield from _unconfined(fact)


def _idmap(fact: Configuration) -> Iterator[Finding]:
    maps = [s for s in fact.raw if s.key == "lxc.idmap" and s.value]
    kinds = {s.value.split()[0] for s in maps}
    for kind, word, other in (("u", "user", "group"), ("g", "group", "user")):
        if not maps or kind in kinds or "b" in kinds:
            continue
        line = fact.raw_line("lxc.idmap", f"{kind} {_DEFAULT_RANGE}")
        runs = fact.uid_map is not None
        yield Finding(
            code="config.idmap_incomplete",
            subject=f"lxc.idmap {kind}",
            severity=Severity.HIGH if runs else Severity.CRITICAL,
            base_severity=Severity.CRITICAL,
            severity_reason="it still runs with the map of its last start" if runs else "",
            title=f"The id map has {other} ranges but no {word} range: the container cannot start",
            observed=f"{len(maps)} `lxc.idmap` lines, none of them for {word} ids",
            expected=f"at least one `lxc.idmap` line that begins with `{kind}`",
            effect=Effect.BREAKS,
            confidence=Confidence.INFERRED,
            evidence=tuple(s.at for s in maps),
            origin="LXC, src/lxc/conf.c (lxc_map_ids)",
            remedy=Remedy(
                now=f"Add `{line}` to {fact.path} (apply the diff with `patch {fact.path}`), then start the container.",
                lasting="The file is read at every start. If the container uses another range than the default one, "
                f"use that range, and let /etc/sub{kind}id of the host grant it to root.",
                undo="Remove the line again.",
                cost="None beyond the start of the container.",
                risk=Risk.R2,
                restarts="the container",
                verify_agent=AGENT_ID,
                diff=fact.diff(Edit(maps[0].line, add=(line,))),
            ),
        )


def _privilege(fact: Configuration) -> Iterator[Finding]:
    now = fact.unprivileged_now
    if now is None or fact.uid_map is None or now is fact.unprivileged:
        return
    words = {True: "unprivileged", False: "privileged"}
    source = fact.setting("unprivileged") or next((s for s in fact.raw if s.key == "lxc.idmap"), None)
    yield Finding(
        code="config.privilege_differs",
        subject="unprivileged",
        severity=Severity.MEDIUM,
        title=f"The configuration says {words[fact.unprivileged]}, but the container runs {words[now]}",
        observed=f"uid map of its init: {' '.join(fact.uid_map.text.split())}",
        expected=f"the map of {'an' if fact.unprivileged else 'a'} {words[fact.unprivileged]} container",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(fact.uid_map, *((source.at,) if source else ())),
        origin=f"user_namespaces(7); {_PVE}",
        remedy=Remedy(
            now="Decide which of the two is meant. Restarting the container makes the file's word true; the files of "
            "its root file system then need owners that fit the new map.",
            lasting="On Proxmox VE change the privilege by backup and restore (`pct restore … --unprivileged 0|1`), "
            "which also changes the owners; do not edit the key by hand.",
            undo="Set the key back to what the uid map shows before the next start.",
            cost="A restart; with wrong owners the container may not come up.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


def _pending(fact: Configuration) -> Iterator[Finding]:
    if not fact.pending:
        return
    keys = ", ".join(dict.fromkeys(s.key for s in fact.pending))
    yield Finding(
        code="config.pending",
        subject="pve:pending",
        severity=Severity.LOW,
        title=f"Changes to {keys} wait for a restart of the container",
        observed=f"{len(fact.pending)} settings under [pve:pending]",
        expected="none",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(s.at for s in fact.pending),
        origin=_PVE,
        remedy=Remedy(
            now=f"Look at `pct pending {fact.name}`, then `pct reboot {fact.name}` when the workload allows it.",
            lasting="The restart moves the values into the configuration; nothing else is needed.",
            undo=f"`pct set {fact.name} --revert KEY` drops a pending change.",
            cost="The container's downtime.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


def _ignored(fact: Configuration) -> Iterator[Finding]:
    for at in fact.ignored:
        yield Finding(
            code="config.line_ignored",
            subject=at.text[:80],
            severity=Severity.LOW,
            title=f"Line {at.line} of the configuration is no setting and has no effect",
            observed=at.text or "an empty line",
            expected="`key: value`, or a raw `lxc.` key" if fact.form is Form.PROXMOX else "`lxc.key = value`",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.INFERRED,
            evidence=(at,),
            origin=_PVE if fact.form is Form.PROXMOX else "LXC, src/lxc/confile.c (parse_line)",
            remedy=Remedy(
                now=f"Correct or remove line {at.line} of {fact.path}.",
                lasting="The file is read at every start.",
                undo="Put the line back.",
                cost="None.",
                risk=Risk.R2,
                restarts="the container, if the corrected line is to apply",
                verify_agent=AGENT_ID,
                diff="" if "[withheld]" in at.text else fact.diff(Edit(at.line or 1, remove=True)),
            ),
        )


def _unconfined(fact: Configuration) -> Iterator[Finding]:
    lines = _opened(fact)
    if lines is None:
        return
    yield Finding(
        code="config.unconfined",
        subject="confinement",
        severity=Severity.MEDIUM,
        title="The container is privileged and nothing confines it",
        observed="AppArmor unconfined, no capability dropped, all devices allowed",
        expected="the defaults, and a rule or dev[n] entry for each GPU node",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=tuple(s.at for s in lines),
        origin="Proxmox VE administration guide, chapter on containers, security considerations",
        remedy=Remedy(
            now="Plan a restart without these lines (see the diff): the GPU nodes get rules of their own.",
            lasting="Keep the nodes as `dev0:` … entries (Proxmox VE 8 and later) or as rules by path. Nested Docker "
            "wants `features: nesting=1,keyctl=1`, not an unconfined container.",
            undo="Put the lines back.",
            cost="Software inside that relied on raw devices or on loading modules stops working.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
            diff=_confining(fact, lines),
        ),
    )


def _opened(fact: Configuration) -> tuple[Setting, ...] | None:
    """The three lines that open a privileged container; None when one of them is missing."""
    if fact.unprivileged:
        return None
    last = {s.key: s for s in fact.raw}
    profile, drop = last.get("lxc.apparmor.profile"), last.get("lxc.cap.drop")
    rule = next((s for s in fact.device_rules() if s.key.endswith("allow") and s.value in ("a", "a *:* rwm")), None)
    if profile is None or drop is None or rule is None or profile.value != "unconfined" or drop.value:
        return None
    return profile, drop, rule


def _confining(fact: Configuration, lines: tuple[Setting, ...]) -> str:
    rules = tuple(
        fact.raw_line("lxc.cgroup2.devices.allow", f"{node.host_path} rw")
        for node in fact.gpu_nodes
        if not node.allowed and not node.host_path.startswith("/dev/nvidia-caps")
    )
    removed = [Edit(s.line, remove=True) for s in lines]
    return fact.diff(*removed, *((Edit(fact.line_after_rules(), add=rules),) if rules else ()))
