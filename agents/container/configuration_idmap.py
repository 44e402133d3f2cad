"""Judgements on `lxc.idmap` lines: can the kernel take the map, and is root granted the ids?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from gapline.agents.container.configuration_fact import Configuration, Form, Granted
from gapline.agents.container.id_map import IdRange, asked_ranges
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.configuration"
_GRANT = re.compile(r"(?:root|0):([0-9]{1,10}):([0-9]{1,10})\s*")
_ROW = re.compile(r"\s*(?:#.*|[^:]{1,64}:[0-9]{1,10}:[0-9]{1,10}\s*)?")
_WORDS = {"u": "user", "g": "group"}

CODES = (
    Code(
        code="config.idmap_overlap",
        title="Two ranges of the id map overlap",
        meaning="The kernel refuses a map in which an id, inside or outside, stands in two ranges (EINVAL; Linux "
        "kernel/user_namespace.c, mappings_overlap), and the container does not start.",
    ),
    Code(
        code="config.idmap_not_granted",
        title="The id map asks for ids of the host that root is not granted",
        meaning="Where newuidmap and newgidmap are installed, as on Proxmox VE, LXC lets them write the map, and they "
        "refuse ids that /etc/subuid and /etc/subgid do not grant to root: 'gid range [104-105) not allowed'.",
    ),
)


def granted(capture: Capture, kind: str) -> tuple[Granted, ...] | None:
    """The ranges that /etc/subuid (`u`) or /etc/subgid (`g`) gives to root (subuid(5)); None for any other form."""
    if not all(_ROW.fullmatch(line.text) for line in capture.lines()):
        return None
    rows = ((line, _GRANT.fullmatch(line.text)) for line in capture.lines())
    return tuple(
        Granted(kind=kind, first=int(match[1]), count=int(match[2]), at=line.evidence) for line, match in rows if match
    )


def findings(fact: Configuration) -> Iterator[Finding]:
    """At most one of each code for users and for groups."""
    for kind in _WORDS:
        ranges = asked_ranges(fact.raw, kind)
        pairs = [pair for pair in combinations(ranges, 2) if _overlap(*pair)]
        if pairs:
            yield _overlapping(fact, kind, pairs[0])
        elif fact.uid_map is None and fact.form is Form.PROXMOX:
            yield from _not_granted(fact, kind, ranges)


def _overlap(one: IdRange, two: IdRange) -> bool:
    return any(
        start < other + two.count and other < start + one.count
        for start, other in ((one.inside, two.inside), (one.outside, two.outside))
    )


def _overlapping(fact: Configuration, kind: str, pair: tuple[IdRange, IdRange]) -> Finding:
    runs = fact.uid_map is not None
    return _finding(
        "config.idmap_overlap",
        f"lxc.idmap {kind}",
        f"Two {_WORDS[kind]} ranges of the id map overlap: the container cannot start",
        tuple(one.evidence for one in pair),
        Remedy(
            now=f"Shorten one of the two ranges in {fact.path}: each begins where the one before it ends.",
            lasting="The file is read at every start of the container.",
            undo="Put the old lines back.",
            cost="Files that belong to the ids that were cut off need new owners.",
            risk=Risk.R2,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
        "it still runs with the map of its last start" if runs else "",
    )


def _not_granted(fact: Configuration, kind: str, ranges: tuple[IdRange, ...]) -> Iterator[Finding]:
    if fact.granted is None:
        return
    mine = [grant for grant in fact.granted if grant.kind == kind]
    missing = [one for one in ranges if one.count and not _covered(one, mine)]
    if not missing:
        return
    first = missing[0]
    file = f"/etc/sub{kind}id"
    line = f"root:{first.outside}:{first.count}"
    yield _finding(
        "config.idmap_not_granted",
        f"lxc.idmap {kind}",
        f"{file} does not grant root the {_WORDS[kind]} ids from {first.outside} on: the container cannot start",
        (*(one.evidence for one in missing), *(grant.at for grant in mine)),
        Remedy(
            now=f"`echo '{line}' >> {file}` on the host, then start the container.",
            lasting=f"The line stays in {file}. Only ids that the container may have belong there.",
            undo=f"Remove the line from {file}.",
            cost="Root's containers may then use these ids of the host.",
            risk=Risk.R4,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
        "",
    )


def _covered(one: IdRange, grants: list[Granted]) -> bool:
    """As newuidmap and newgidmap ask: neighbouring lines count together, and root's own id is root's (shadow,
    lib/subordinateio.c and src/newuidmap.c).
    """
    if (one.outside, one.count) == (0, 1):
        return True
    at, end = one.outside, one.outside + one.count
    for grant in sorted(grants, key=lambda grant: grant.first):
        if grant.first <= at < grant.first + grant.count:
            at = grant.first + grant.count
    return at >= end


def _finding(  # noqa: PLR0913, PLR0917  # the parts that the two differ in
    code: str, subject: str, title: str, evidence: tuple[Evidence, ...], remedy: Remedy, runs: str
) -> Finding:
    return Finding(
        code=code,
        subject=subject,
        severity=Severity.HIGH if runs else Severity.CRITICAL,
        base_severity=Severity.CRITICAL,
        severity_reason=runs,
        title=title,
        observed="; ".join(at.text for at in evidence)[:300],
        expected="ranges that do not overlap, each granted to root",
        effect=Effect.BREAKS,
        confidence=Confidence.INFERRED,
        evidence=evidence,
        origin="user_namespaces(7); LXC, src/lxc/conf.c (lxc_map_ids); newuidmap(1)",
        remedy=remedy,
    )
