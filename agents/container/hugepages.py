"""Agent `container.hugepages`: huge pages that the container may take, and what the host has of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.agents.container.cgroup_files import (
    UNIFIED,
    Amount,
    Counter,
    amount,
    counters,
    folder,
    old_layout,
    unified,
)
from gapline.orchestrator.model.agent import Agent, Code, Layer, Scope
from gapline.orchestrator.model.capture import Capture, Captures, Line
from gapline.orchestrator.model.errors import ParseError
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Fact, Outcome, judged
from gapline.orchestrator.model.source import File, Glob, Source

__all__ = ["AGENT", "HugePages"]

AGENT_ID = "container.hugepages"
_POOLS = "/sys/kernel/mm/hugepages"
_TRANSPARENT = re.compile(r"(?:[a-z_]+ )*\[([a-z_]+)\](?: [a-z_]+)*")
_MOUNT = re.compile(r"\d+ \d+ \d+:\d+ \S+ (/\S*) .* - hugetlbfs .*")
_POOL = re.compile(rf"{_POOLS}/hugepages-([0-9]{{1,10}})kB/nr_hugepages")
_SIZES = {"64KB": 64, "2MB": 2048, "32MB": 32768, "512MB": 524288, "1GB": 1048576, "16GB": 16777216}

SOURCES: Mapping[str, Source] = {
    "unified": UNIFIED,
    "limits": Glob(
        "/sys/fs/cgroup{cgroup}/cpu.stat "
        + " ".join(f"/sys/fs/cgroup{{cgroup}}/hugetlb.{size}.{name}" for size in _SIZES for name in ("max", "events"))
    ),
    "pools": Glob(f"{_POOLS}/hugepages-*/nr_hugepages"),
    "transparent": File("/sys/kernel/mm/transparent_hugepage/enabled"),
    "mounts": File("/proc/{init}/mountinfo"),
}

CODES = (
    Code(
        code="hugepages.refused",
        title="Huge pages were refused to the container",
        meaning="The max row of hugetlb.SIZE.events counts requests beyond the limit of its cgroup. What maps such a "
        "page gets ENOMEM or is killed by SIGBUS (Linux, admin-guide/cgroup-v2.rst, HugeTLB).",
    ),
    Code(
        code="hugepages.not_allowed",
        title="The host has huge pages and the container may use none",
        meaning="hugetlb.SIZE.max is 0 while pages of that size are set aside on the host. Only programs that ask for "
        "huge pages by themselves are concerned; CUDA does not.",
    ),
)


class HugePageLimit(Fact):
    """One size of huge pages."""

    page_kib: int
    limit: Amount | None  # bytes; None: the controller is off, and nothing limits
    refused: Counter | None
    pool: Counter | None  # pages that the host has set aside


class HugePages(Fact):
    """Explicit huge pages by size; the transparent ones, which are the host's alone; and mounts for them inside."""

    unified: bool
    sizes: tuple[HugePageLimit, ...] = ()
    transparent: str  # "always", "madvise", "never": the same in all containers
    transparent_evidence: Evidence | None
    mounts: tuple[Evidence, ...]  # hugetlbfs in the container


def parse(captures: Captures) -> HugePages:
    transparent = captures.have("transparent")
    mode, at = _transparent(transparent.first()) if transparent else ("", None)
    mounts = tuple(line.evidence for line in captures.need("mounts").lines() if _MOUNT.fullmatch(line.text))
    if not unified(captures["unified"]):
        return HugePages(unified=False, transparent=mode, transparent_evidence=at, mounts=mounts)
    return HugePages(
        unified=True,
        sizes=tuple(_sizes(captures.need("limits"), captures.have("pools"))),
        transparent=mode,
        transparent_evidence=at,
        mounts=mounts,
    )


def _transparent(line: Line) -> tuple[str, Evidence]:
    match = _TRANSPARENT.fullmatch(line.text.strip())
    if match is None:
        raise ParseError(line.evidence, "modes, one of them in brackets")
    return match[1], line.evidence


def _sizes(limits: Capture, pools: Capture | None) -> Iterator[HugePageLimit]:
    at, files = folder(limits, "cpu.stat"), limits.files()
    if f"{at}/cpu.stat" not in files:
        raise ParseError(limits.first().evidence, "cpu.stat, which every cgroup has")
    by_size = _pools(pools) if pools else {}
    for name, kib in _SIZES.items():
        limit = amount(files, f"{at}/hugetlb.{name}.max")
        events = counters(files, f"{at}/hugetlb.{name}.events")
        if limit is not None or kib in by_size:
            yield HugePageLimit(page_kib=kib, limit=limit, refused=events.get("max"), pool=by_size.get(kib))


def _pools(capture: Capture) -> dict[int, Counter]:
    found: dict[int, Counter] = {}
    for path, (line, *_) in capture.files().items():
        match = _POOL.fullmatch(path)
        if match is None or not re.fullmatch(r"[0-9]{1,12}", line.text):
            raise ParseError(line.evidence, "a number of pages")
        found[int(match[1])] = Counter(value=int(line.text), evidence=line.evidence)
    return found


def judge(fact: HugePages, _: Limits) -> Outcome:
    """No huge pages at all is how nearly every host is, and nothing wrong."""
    return judged(fact, tuple(_findings(fact)), () if fact.unified else old_layout("huge pages of containers"))


def _findings(fact: HugePages) -> Iterator[Finding]:
    for one in fact.sizes:
        size = f"{one.page_kib // 1024} MiB" if one.page_kib >= 1024 else f"{one.page_kib} KiB"  # noqa: PLR2004  # units
        if one.refused and one.refused.value:
            yield _refused(one, one.refused, size)
        elif one.limit and one.limit.value == 0 and one.pool and one.pool.value:
            yield _not_allowed(one.limit, one.pool, size)


def _refused(one: HugePageLimit, refused: Counter, size: str) -> Finding:
    return Finding(
        code="hugepages.refused",
        subject=size,
        severity=Severity.HIGH,
        title=f"Huge pages of {size} were refused to the container {refused.value} times",
        observed=f"{refused.evidence.text}; limit {one.limit.evidence.text if one.limit else 'none of its own'}",
        expected="max 0",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(refused.evidence, *((one.limit.evidence,) if one.limit else ())),
        remedy=_remedy(),
    )


def _not_allowed(limit: Amount, pool: Counter, size: str) -> Finding:
    return Finding(
        code="hugepages.not_allowed",
        subject=size,
        severity=Severity.LOW,
        title=f"The host has {pool.value} huge pages of {size}, and the container may use none",
        observed=f"limit {limit.evidence.text}",
        expected="a limit that leaves some, if something in the container asks for them",
        effect=Effect.PLAUSIBLE,
        confidence=Confidence.VERIFIED,
        evidence=(limit.evidence, pool.evidence),
        settled_by="the max row of hugetlb.SIZE.events after the engine was started",
        remedy=_remedy(),
    )


def _remedy() -> Remedy:
    return Remedy(
        now="Raise or remove the `lxc.cgroup2.hugetlb` lines of the container's configuration.",
        lasting="They are read at every start. Set pages aside on the host by vm.nr_hugepages in /etc/sysctl.d/.",
        undo="Put the lines back.",
        cost="Pages that one container takes others cannot have.",
        risk=Risk.R2,
        restarts="the container",
        verify_agent=AGENT_ID,
    )


AGENT = Agent(
    id=AGENT_ID,
    title="Huge pages",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=HugePages,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
