"""What has gone wrong since this machine started, by its kernel's log?"""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.host.log.driver import CODES as DRIVER_CODES
from gapline.agents.host.log.driver import driver_findings
from gapline.agents.host.log.fact import KernelLog
from gapline.agents.host.log.machine import CODES as MACHINE_CODES
from gapline.agents.host.log.machine import machine_findings
from gapline.agents.host.log.reading import SOURCES, read
from gapline.agents.host.log.slot import CODES as SLOT_CODES
from gapline.agents.host.log.slot import slot_findings
from gapline.agents.host.log.xid import CODES as XID_CODES
from gapline.agents.host.log.xid import xid_findings
from gapline.orchestrator.model.agent import Agent, Layer, Scope
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

__all__ = ["AGENT", "KernelLog"]


def judge(fact: KernelLog, limits: Limits) -> Outcome:
    """A log that does not reach back to the boot, or that the firmware keeps errors from, is never a clean one."""
    findings = (
        *xid_findings(fact, limits),
        *driver_findings(fact, limits),
        *slot_findings(fact, limits),
        *machine_findings(fact, limits),
    )
    return judged(fact, findings, tuple(_unseen(fact)))


def _unseen(fact: KernelLog) -> Iterator[Problem]:
    if not fact.whole:
        since = "" if fact.begins_seconds is None else f"; it begins {fact.begins_seconds:.0f} s after boot"
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail=f"the kernel's log does not reach back to the boot{since}",
            hint="Keep the journal (mkdir /var/log/journal), or a larger ring buffer: kernel parameter log_buf_len.",
        )
    if fact.firmware_keeps_errors:
        yield Problem(
            kind=ProblemKind.UNSEEN,
            detail=f"the firmware keeps PCI Express errors of {fact.firmware_keeps_errors} root bridges to itself "
            "(_OSC), so that there are none in this log says nothing",
            hint="Look into the BMC's event log, or give the operating system AER in the firmware's setup.",
        )


AGENT = Agent(
    id="host.kernel_log",
    title="Kernel log",
    layer=Layer.SYSTEM,
    scope=Scope.HOST,
    fact=KernelLog,
    sources=SOURCES,
    parse=read,
    judge=judge,
    codes=(*XID_CODES, *DRIVER_CODES, *SLOT_CODES, *MACHINE_CODES),
    limits=(
        "incident_seconds",
        "recurring",
        "repeated_application_errors",
        "recent_seconds",
        "corrected_link_errors",
        "large_process_gib",
        "least_share_of_lanes",
    ),
)
