"""After the audit: an agent again after the repair, the snapshot judged again, another host lost meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from gapline.orchestrator.cli.registry import all_agents
from gapline.orchestrator.demo import FLEET, REPAIRED
from gapline.orchestrator.model.agent import Agent
from gapline.orchestrator.model.run import Run, TargetEntry
from gapline.orchestrator.plan import PRESENT, SURVEY
from gapline.orchestrator.transport.ssh.replay_process import serving
from tests.cli.command_line import CommandLine, answers, keys_read
from tests.ssh.sshd import Sshd, free_port

pytestmark = pytest.mark.ssh
SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
RERUN = json.loads((SCHEMAS / "rerun-1.json").read_text())
CHAIN, SICK = "pair.device_chain", "pve-b/129"


def sources(*ids: str) -> set[str]:
    """What these agents read."""
    readers = [agent for agent in all_agents() if agent.id in ids and isinstance(agent, Agent)]
    return {source.key for agent in readers for source in agent.sources.values()}


def met(run: Run) -> list[TargetEntry]:
    """The targets as far as a replay can know them again."""
    fresh = {"route": "", "connections": 0, "sessions": 0}
    return [target.model_copy(update=fresh) for target in run.targets]


def test_an_agent_again_reads_only_what_it_needs(gapline: CommandLine, sshd: Sshd) -> None:
    """The second snapshot holds the survey and the agent's own sources; the rest of the run is one merge older."""
    gapline.fleet(sshd.host())
    gapline("audit", "--out", "out", "--fail-on", "none")
    first = gapline.run()
    done = gapline("rerun", "host.numa_balancing", "--json")
    jsonschema.validate(done.json, RERUN)
    merged = gapline.run()
    assert merged.run.snapshots == ("snapshot-1", "snapshot-2")
    survey = {source.key for source in SURVEY.values()}
    assert keys_read(merged, gapline.here / "out", "pve1") == survey | sources("host.numa_balancing")
    ages = {one.agent: (one.age, one.snapshot) for one in merged.outcomes}
    assert ages.pop("host.numa_balancing") in {(0, 1), (1, 0)}  # fresh, or unknown and then the old one
    assert set(ages.values()) == {(1, 0)}
    assert answers(merged).keys() == answers(first).keys()
    assert merged.targets[0].connections == 1


def test_repair_is_seen_and_a_lost_host_is_not_a_repair(gapline: CommandLine) -> None:
    """The incident of the worked example: found, replayed to the same run, lost (unknown), repaired (fixed)."""
    with serving(FLEET) as server:
        host = server.host("pve-b")
        gapline.fleet(host)
        found = gapline("audit", "--out", "out")
    before = gapline.run()
    assert found.code == before.summary.exit_code == 1
    replayed = gapline("replay", "out/snapshot-1", "--out", "replayed")
    again = gapline.run("replayed")
    assert replayed.code == found.code
    assert answers(again) == answers(before)
    assert met(again) == met(before)
    assert again.layers == before.layers
    assert again.summary == before.summary
    not_again = gapline("rerun", CHAIN, "--run", "replayed")
    assert (not_again.code, "request.json" in not_again.err) == (2, True)

    gapline.fleet(replace(host, port=free_port(), identity=(), known_hosts=None))
    lost = gapline("rerun", CHAIN, "--target", SICK, "--run", "out", "--json")
    jsonschema.validate(lost.json, RERUN)
    assert lost.code == 3
    told = {change["code"]: change["state"] for change in lost.json["changes"] if change["target"] == SICK}
    assert set(told.values()) == {"unknown"}
    kept = gapline.run()
    assert answers(kept, [SICK]) == answers(before, [SICK])
    assert kept.summary.exit_code == 1

    with serving(FLEET, REPAIRED) as server:
        gapline.fleet(server.host("pve-b"))
        done = gapline("rerun", CHAIN, "--target", SICK, "--run", "out")
    assert "fixed" in done.out
    merged = gapline.run()
    folder = gapline.here / "out"
    inside = keys_read(merged, folder, SICK)
    assert inside <= sources(*(agent.id for agent in all_agents())) | {PRESENT.key}
    assert "inside:script:driver-libraries" not in inside
    critical = [one for one in merged.outcomes if one.target == SICK and one.agent == CHAIN]
    assert [one.findings for one in critical] == [()]
    assert merged.run.snapshots == ("snapshot-1", "snapshot-2", "snapshot-3")
    assert "</html>" in (folder / "report.html").read_text()
