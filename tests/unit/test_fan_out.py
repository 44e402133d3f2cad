"""Hosts side by side: whatever one of them or an agent does, the others are judged and the run is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from gapline import __version__
from gapline.orchestrator.audit.fan_out import Circumstances, audit
from gapline.orchestrator.audit.progress import Event, HostFinished
from gapline.orchestrator.discovery.containers import CONTAINERS
from gapline.orchestrator.inventory.host import Host
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.errors import ConfigError, ConnectionRefused
from gapline.orchestrator.model.outcome import Fact, Passed
from gapline.orchestrator.model.problem import ProblemKind
from gapline.orchestrator.model.run import Run
from gapline.orchestrator.run_log import quiet_unless_logged
from gapline.orchestrator.snapshot import SnapshotWriter, read
from gapline.orchestrator.transport.replay import ReplayRoute
from gapline.orchestrator.transport.route import Route
from gapline.reports import json
from tests.unit.invented import LEVEL_FILE, STARTED, level_agent, plan

pytestmark = pytest.mark.anyio
HOSTS = tuple(Host(name=name, address=name) for name in ("good", "refused", "cursed"))


@pytest.fixture(autouse=True)
def _quiet() -> None:
    """No log of a test on the terminal."""
    structlog.reset_defaults()
    quiet_unless_logged()


class Odd(Fact):
    """A fact that JSON cannot hold."""

    thing: bytes


async def connect(host: Host) -> Route:
    """One answers, one refuses, and one brings out a bug of ours."""
    if host.name == "refused":
        raise ConnectionRefused(host.name, "nothing listens there", hint="Start it.")
    if host.name == "cursed":
        raise RuntimeError("a bug")
    told = {LEVEL_FILE.key: b"50\n", CONTAINERS.key: b"no-lxc\n"}
    answers = {key: Capture(host.name, key, key, text) for key, text in told.items()}
    return ReplayRoute(host.name, lambda _, key: answers.get(key))


async def run_of(
    *hosts: Host, keep: SnapshotWriter | None = None, seen: list[Event] | None = None, **odd: object
) -> Run:
    """An audit of these hosts."""
    agents = (level_agent(), level_agent("host.odd", **odd)) if odd else (level_agent(),)
    events: list[Event] = [] if seen is None else seen
    snapshot = "snapshot-1" if keep else None
    return await audit(
        plan(*hosts, agents=agents),
        connect,
        keep=keep,
        circumstances=Circumstances(snapshot=snapshot),
        observe=events.append,
    )


async def test_one_bad_host_never_cancels_the_others() -> None:
    """Refused is that host's problem, a bug is exit 4, and the good host has its answer."""
    seen: list[Event] = []
    run = await run_of(*HOSTS, seen=seen)
    kinds = {target.id: target.problem.kind if target.problem else None for target in run.targets}
    assert kinds == {"good": None, "refused": ProblemKind.UNREACHED, "cursed": ProblemKind.DEFECT}
    assert [one.status for one in run.outcomes if one.target == "good"] == ["passed"]
    assert run.summary.exit_code == 4
    assert {event.host for event in seen if isinstance(event, HostFinished)} == {"good", "refused", "cursed"}


async def test_a_fault_of_the_users_configuration_ends_it() -> None:
    """It concerns every host, so nobody has to read it once per host."""

    async def misconfigured(_: Host) -> Route:
        raise ConfigError("a jump host that jumps to itself", path="~/.ssh/config", line=3)

    with pytest.raises(ExceptionGroup) as caught:
        await audit(plan(HOSTS[0]), misconfigured, keep=None, circumstances=Circumstances())
    assert caught.group_contains(ConfigError)


async def test_a_fact_that_cannot_be_written_is_its_agents_defect() -> None:
    """The run can be written, the other agent is not touched."""
    odd = Odd.model_construct(thing=b"\xff\xfe")
    run = await run_of(HOSTS[0], fact=Odd, parse=lambda _: odd, judge=lambda fact, _: Passed(fact))
    by_agent = {one.agent: one for one in run.outcomes}
    assert by_agent["host.level"].status == "passed"
    problem = by_agent["host.odd"].problem
    assert problem is not None
    assert problem.kind is ProblemKind.DEFECT
    assert "host.odd" in json.text(run)


async def test_targets_stand_in_the_order_of_the_plan(tmp_path: Path) -> None:
    """Whoever is first to answer; and the snapshot holds what was read, for a replay."""
    keep = SnapshotWriter(tmp_path / "snapshot-1", version=__version__, created=STARTED)
    later = replace(HOSTS[0], name="zzz")
    run = await run_of(HOSTS[1], later, HOSTS[0], keep=keep)
    assert [target.id for target in run.targets] == ["refused", "zzz", "good"]
    assert run.run.snapshots == ("snapshot-1",)
    stored = read(tmp_path / "snapshot-1")
    assert stored.complete
    assert stored.captures("good")[LEVEL_FILE.key].text == "50\n"
