"""A finished audit as it is written to `run.json` (schema `gapline/run/1`): the only input of reports and exports."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from gapline.orchestrator.model.finding import Finding
from gapline.orchestrator.model.outcome import Status
from gapline.orchestrator.model.problem import Problem
from gapline.orchestrator.model.trait import Trait
from gapline.orchestrator.model.written_fact import WrittenFact

SCHEMA: Literal["gapline/run/1"] = "gapline/run/1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TargetKind(StrEnum):
    """What a target is. `unreached`: nobody could tell."""

    PROXMOX_HOST = "proxmox_host"
    LINUX_HOST = "linux_host"
    LXC_CONTAINER = "lxc_container"
    UNREACHED = "unreached"


class Header(_Part):
    """When, with what and in which mode the run was made."""

    id: str
    started: AwareDatetime  # by our clock, UTC
    finished: AwareDatetime
    gapline: str  # version
    playbook: str
    fail_on: str  # a severity, or "none"
    synthetic: bool  # worked example or replayed invention: said on every page
    snapshots: tuple[str, ...]  # directories, newest last


class TargetEntry(_Part):
    """One target as it was met."""

    id: str
    kind: TargetKind
    parent: str | None
    route: str  # "ssh", "local", "replay", "lxc-attach via pve1"
    name: str  # host name, or the container's name
    boot_id: str | None
    uptime_seconds: float | None
    privilege: str | None  # "root", "sudo", "sudo_reads", "user audit"
    load: tuple[float, float, float] | None  # 1, 5 and 15 minutes while we looked
    clock_skew_seconds: float | None  # theirs minus ours, ± the round trip
    audited: bool  # False: listed only, see `reason`
    reason: str  # why it is or is not audited: "GPU process 4121 maps to it", "no NVIDIA node or major named"
    problem: Problem | None  # why it was not reached, or only in part
    labels: tuple[str, ...] = ()
    connections: int = 0
    sessions: int = 0


class Times(_Part):
    """Seconds since the run started. None: did not happen."""

    planned: float
    collected: float | None  # when the last of the agent's sources had arrived
    judged: float | None


class ReportedFinding(Finding):
    """A finding in a run."""

    fingerprint: str
    waived: bool = False


class OutcomeEntry(_Part):
    """One agent's answer on one target. For pair agents the target is the container."""

    target: str
    agent: str
    title: str
    layer: int = Field(ge=1, le=5)
    status: Status
    reason: str  # one sentence for people, also when it passed
    problem: Problem | None
    unseen: tuple[Problem, ...]  # what this agent could not see besides
    times: Times
    snapshot: int | None  # index into run.snapshots
    age: int  # number of runs merged in since this was collected; 0 is fresh
    fact: WrittenFact | None
    findings: tuple[ReportedFinding, ...]
    traits: tuple[Trait, ...] = ()  # what is compared with the answers of the same agent about others


class Verdict(StrEnum):
    """What a layer's outcomes add up to."""

    CLEARED = "cleared"  # everything that belongs to it was seen and is fine
    SUSPECT = "suspect"  # something in it was found
    NOT_TESTED = "not_tested"  # nothing, or not enough, was seen to say anything
    BOUNDED = "bounded"  # a figure limits how much it can matter


class LayerEntry(_Part):
    """One of the five layers of elimination."""

    layer: int = Field(ge=1, le=5)
    verdict: Verdict
    reason: str


class Summary(_Part):
    """Counts, and the first things to do."""

    targets: int
    audited: int
    findings: dict[str, int]  # by severity
    statuses: dict[str, int]  # outcomes by status
    first: tuple[str, ...]  # fingerprints, in the order in which to fix them
    exit_code: int


class Run(_Part):
    """The whole document."""

    schema_: Literal["gapline/run/1"] = Field(default=SCHEMA, alias="schema")
    run: Header
    targets: tuple[TargetEntry, ...]
    outcomes: tuple[OutcomeEntry, ...]
    layers: tuple[LayerEntry, ...]
    ceiling: dict[str, Any] | None = None
    waterfall: dict[str, Any] | None = None
    summary: Summary

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)
