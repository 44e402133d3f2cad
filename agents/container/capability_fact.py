"""Capabilities of a container as a fact."""

from __future__ import annotations

from gapline.agents.container.capability_names import held, lacking
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.outcome import Fact


class Holder(Fact):
    """A GPU process and its effective capabilities."""

    pid: int
    name: str
    effective: int
    evidence: Evidence


class Capabilities(Fact):
    """Masks of the container's init and of its GPU processes.

    In an unprivileged container they hold in its own user name space only: checks against the initial one fail
    whatever the mask says (capabilities(7)).
    """

    privileged: bool  # the init lives in the initial user name space
    bounding: int  # what no process of the container can get beyond
    bounding_evidence: Evidence
    effective: int
    effective_evidence: Evidence
    engines: tuple[Holder, ...]
    ptrace_scope: int | None  # of the Yama module; None where it is not built in

    @property
    def names(self) -> tuple[str, ...]:
        """The bounding set, decoded."""
        return held(self.bounding)

    @property
    def dropped(self) -> tuple[str, ...]:
        """What the bounding set lacks. LXC's default for privileged containers drops SYS_MODULE, SYS_RAWIO, SYS_TIME,
        MAC_OVERRIDE and MAC_ADMIN (config/templates/common.conf.in).
        """
        return lacking(self.bounding)
