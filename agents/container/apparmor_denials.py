"""Agent `container.apparmor_denials`: did AppArmor deny the container something that an engine needs?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from gapline.agents.container.denial_reading import DENIALS, Denial, Denials, denials
from gapline.orchestrator.model.agent import Agent, Code, Layer, Scope
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import Source

__all__ = ["AGENT", "Denials"]

AGENT_ID = "container.apparmor_denials"
SOURCES: Mapping[str, Source] = {"denials": DENIALS}
_GPU = re.compile(
    r"/dev/(?:nvidia|infiniband|shm/|dri/)|/proc/driver/nvidia|/sys/(?:class|bus)/(?:drm|pci|infiniband)|libcuda"
)
_SHOWN = 8

CODES = (
    Code(
        code="denials.gpu",
        title="AppArmor denied the container something of a GPU",
        meaning="A node, a file of the driver, shared memory or RDMA. The profiles of LXC and Proxmox VE deny none of "
        "that, "
        "so a profile of one's own is in force, or one within the container.",
    ),
    Code(
        code="denials.other",
        title="AppArmor denied the container other things",
        meaning="For information: mounts that systemd tries at its start, mostly. It costs no speed.",
    ),
)


def parse(captures: Captures) -> Denials:
    """One source, one fact."""
    return denials(captures.need("denials"))


def judge(fact: Denials, _: Limits) -> Outcome:
    """A log that lost its beginning says nothing about what it lost."""
    if not fact.enabled:
        return NotApplicable("AppArmor is not in this kernel", fact)
    gpu = [one for one in fact.denials if _GPU.search(one.name)]
    rest = [one for one in fact.denials if not _GPU.search(one.name)]
    return judged(fact, (*_of_gpu(gpu), *_others(rest)), tuple(_unseen(fact)))


def _unseen(fact: Denials) -> Iterator[Problem]:
    if not fact.whole:
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail="the kernel's log does not reach back to the boot, so earlier denials were not seen",
            hint="Keep the journal (mkdir /var/log/journal), or a larger ring buffer: kernel parameter log_buf_len.",
        )


def _of_gpu(found: list[Denial]) -> Iterator[Finding]:
    if found:
        yield _finding("denials.gpu", Severity.MEDIUM, found, "AppArmor denied what a GPU needs", Effect.BREAKS)


def _others(found: list[Denial]) -> Iterator[Finding]:
    if found:
        yield _finding("denials.other", Severity.INFO, found, "AppArmor denied other things", Effect.DOCUMENTED)


def _finding(code: str, severity: Severity, found: list[Denial], title: str, effect: Effect) -> Finding:
    told = (
        f"{one.operation} {one.name or one.info or one.about} by {one.program} ({one.times} times)" for one in found
    )
    return Finding(
        code=code,
        subject="apparmor",
        severity=severity,
        title=f"{title}, {sum(one.times for one in found)} times since boot",
        observed="; ".join(told)[:400],
        expected="no denial, or one that is meant",
        effect=effect,
        confidence=Confidence.VERIFIED,
        evidence=tuple(one.evidence for one in found[:_SHOWN]),
        origin="Linux, admin-guide/LSM/apparmor.rst; LXC's profiles in lxc/config/apparmor",
        remedy=Remedy(
            now="See which profile it is: `journalctl -k -b | grep DENIED` on the host, and `lxc.apparmor.profile` and "
            "`lxc.apparmor.raw` in the container's configuration. Denied mounts of systemd need nothing.",
            lasting="Add a rule for the path to that profile (`lxc.apparmor.raw: PATH rw,`) rather than turn it off.",
            undo="Take the rule out and restart the container.",
            cost="What the rule names is open to the container.",
            risk=Risk.R4,
            restarts="the container",
            verify_agent=AGENT_ID,
        ),
    )


AGENT = Agent(
    id=AGENT_ID,
    title="What AppArmor denied",
    layer=Layer.CONTAINER,
    scope=Scope.CONTAINER,
    fact=Denials,
    sources=SOURCES,
    parse=parse,
    judge=judge,
    codes=CODES,
)
