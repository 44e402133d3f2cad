"""Judgements on a container's id maps."""

from __future__ import annotations

from collections.abc import Sequence

from gapline.agents.container.id_map import IdRange, joined
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.privilege"
_GUIDE = "Proxmox VE administration guide, chapter on containers, security considerations"

CODES = (
    Code(
        code="privilege.privileged",
        title="The container is privileged",
        meaning="Root inside is root outside; what confines it are dropped capabilities, seccomp, AppArmor and the "
        "device policy. GPUs do not need it: an unprivileged container computes as fast with the same nodes. What it "
        "brings is that limits such as RLIMIT_MEMLOCK do not hold for its root. For information.",
    ),
    Code(
        code="privilege.root_is_root",
        title="The id map makes root inside root outside",
        meaning="The container counts as unprivileged, but its map gives the host's user 0 to it: files and nodes of "
        "the host's root are open to it wherever they can be reached.",
    ),
    Code(
        code="privilege.map_differs",
        title="The id map in force is not the one that is configured",
        meaning="The `lxc.idmap` lines were changed after the start. Owners of files and modes of nodes are judged by "
        "the map of the running init (user_namespaces(7)); the configured one holds from the next start on.",
    ),
)


def privileged(at: Evidence, claim: Evidence | None) -> Finding:
    """Root inside is root outside."""
    return Finding(
        code="privilege.privileged",
        subject="uid_map",
        severity=Severity.INFO,
        base_severity=Severity.LOW,
        severity_reason="a matter of security, and meant so in many GPU containers; it costs no speed",
        title="The container is privileged: its root is the host's root",
        observed=f"uid map {' '.join(at.text.split())}",
        expected="an unprivileged container, unless something in it needs the host's root",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(at, *((claim,) if claim else ())),
        origin=_GUIDE,
        remedy=Remedy(
            now="Nothing needs to be done for speed.",
            lasting="Where isolation matters: back the container up and restore it as unprivileged (`pct restore … "
            "--unprivileged 1`), and give it the GPU nodes with `mode=0666` by dev[n] entries.",
            undo="Restore the backup with `--unprivileged 0`.",
            cost="Downtime; RLIMIT_MEMLOCK then holds for its root, so set `lxc.prlimit.memlock: unlimited` with it.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


def root_is_root(at: Evidence) -> Finding:
    """A map that is not everything, and yet gives root."""
    return Finding(
        code="privilege.root_is_root",
        subject="uid_map",
        severity=Severity.LOW,
        title="The id map makes root inside root outside",
        observed=f"uid map {' '.join(at.text.split())}",
        expected="root inside mapped to an id that owns nothing on the host, such as 100000",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(at,),
        origin="user_namespaces(7)",
        remedy=_remedy("Map 0 to an unprivileged range in the `lxc.idmap` lines."),
    )


def map_differs(kind: str, asked: Sequence[IdRange], running: Sequence[IdRange]) -> Finding:
    """Another map runs than is asked for."""
    return Finding(
        code="privilege.map_differs",
        subject=f"{kind}s",
        severity=Severity.MEDIUM,
        title=f"The {kind} id map in force is not the one that is configured",
        observed=_told(running),
        expected=_told(asked),
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(*(one.evidence for one in running), *(one.evidence for one in asked)),
        origin="user_namespaces(7): a map is written once, when the name space is made",
        remedy=_remedy("Decide which of the two is meant; a restart of the container makes the file's map true."),
    )


def _told(ranges: Sequence[IdRange]) -> str:
    return ", ".join(f"{inside} → {outside} ({count})" for inside, outside, count in joined(ranges))[:300]


def _remedy(now: str) -> Remedy:
    return Remedy(
        now=now,
        lasting="The lines are read at every start; files of the root file system need owners that fit the map.",
        undo="Put the old lines back before the next start.",
        cost="The container's downtime; with wrong owners it may not come up.",
        risk=Risk.R2,
        restarts="the container",
        verify_agent=AGENT_ID,
    )
