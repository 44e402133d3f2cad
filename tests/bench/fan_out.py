"""Many hosts at once, against the floor and against what people use today, alternating in one run."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import anyio

from gapline.orchestrator.cli.auditing import collect, write
from gapline.orchestrator.cli.selection import Selection, plan_of
from gapline.orchestrator.inventory.host import Containers, Host
from gapline.orchestrator.plan import Plan
from gapline.orchestrator.run_folder import make
from gapline.orchestrator.transport.ssh.replay_process import serving
from tests.bench import peers
from tests.bench.bare_script import run_bare, script_of
from tests.bench.loopback_fleet import LoopbackFleet, loopback_fleet

ROUNDS = 5
AGENTS = (
    *("host.cpu_frequency", "host.numa_balancing", "host.pcie", "host.nvidia_driver"),
    *("container.configuration", "container.device_nodes", "container.driver_libraries", "container.rlimits"),
    *("pair.device_chain", "pair.driver_match"),
)
"""Always the same questions, so that figures of different versions can be compared."""


def plan(hosts: tuple[Host, ...]) -> Plan:
    """These agents on these hosts."""
    return plan_of(Selection(targets=(), fleet=None, agents=AGENTS), hosts)


def audit_once(of: Plan, folder: Path) -> None:
    """What `gapline audit` does, from connecting to the report, in this process."""
    run_folder = make(folder)
    write(collect(of, run_folder), run_folder)


def fan_out(hosts: int, rounds: int = ROUNDS) -> None:
    """Print the medians and their ratios."""
    with tempfile.TemporaryDirectory() as name, loopback_fleet(Path(name)) as fleet:
        of = plan(fleet.hosts(hosts))
        scratch = Path(name) / "runs"
        number = iter(range(10**6))
        contenders: dict[str, Callable[[], object]] = {
            "bare": lambda: anyio.run(run_bare, of),
            "gapline": lambda: audit_once(of, scratch / str(next(number))),
            **peers.contenders(fleet, hosts, script_of(of, of.hosts[0]), Path(name)),
        }
        print(f"{hosts} hosts, {len(script_of(of, of.hosts[0]))} bytes of script each, median of {rounds}, alternating")
        _table(_alternate(contenders, rounds))


def _alternate(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The first round warms up and is not counted."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            begin = time.monotonic()
            run()
            if number:
                times[name].append(time.monotonic() - begin)
    return times


def _table(times: Mapping[str, list[float]]) -> None:
    bare = statistics.median(times["bare"])
    ours = statistics.median(times["gapline"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"  {name:<10}{median:8.2f} s   {median / bare:6.2f} x bare   {median / ours:6.2f} x gapline")


def marginal_cpu(snapshot: Path | None, containers: Containers = Containers.NONE) -> None:
    """CPU of this side per further host: (CPU of 200 less CPU of 100) / 100, each in a process of its own.

    With a snapshot the hosts are that recorded one, behind the replay server.
    """
    spent = {count: _spent(count, snapshot, containers) for count in (100, 200)}
    what = "recorded big host" if snapshot else "loopback host"
    with_it = " with its GPU container" if containers is Containers.AUTO else ""
    each = (spent[200] - spent[100]) / 100 * 1000
    print(
        f"marginal CPU per {what}{with_it}: {each:.1f} ms   "
        f"(100: {spent[100]:.2f} s, 200: {spent[200]:.2f} s, start-up in both)"
    )


def _spent(count: int, snapshot: Path | None, containers: Containers) -> float:
    with tempfile.TemporaryDirectory() as name:
        if snapshot is not None:
            with serving(snapshot, copies=count) as server:
                names = (f"big-{number:04}" for number in range(1, count + 1))
                hosts = tuple(replace(server.host(one), containers=containers) for one in names)
                return _in_child(plan(hosts), Path(name) / "run")
        with loopback_fleet(Path(name)) as fleet:
            return _in_child(plan(fleet.hosts(count)), Path(name) / "run")


def _in_child(of: Plan, folder: Path) -> float:
    """User and system time of an audit in a forked child."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        audit_once(of, folder)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    if status:
        sys.exit(f"the audit of {len(of.hosts)} hosts failed: {status}")
    return used.ru_utime + used.ru_stime


def rerun(rounds: int = ROUNDS) -> None:
    """`gapline rerun` of one agent as a command, against the same script over one session."""
    with tempfile.TemporaryDirectory() as name, loopback_fleet(Path(name)) as fleet:
        folder = Path(name)
        inventory = _inventory(fleet, folder)
        environment = {**os.environ, "GAPLINE_STATE": str(folder / "state"), "HOME": name}
        gapline = (sys.executable, "-m", "gapline")
        first = (*gapline, "audit", "-i", str(inventory), "--out", str(folder / "run"))
        subprocess.run(first, env=environment, capture_output=True, check=False)
        agent = "host.numa_balancing"
        again = (*gapline, "rerun", agent, "--run", str(folder / "run"))
        of = plan_of(Selection(targets=(), fleet=None, agents=(agent,)), fleet.hosts(1))
        times = _alternate(
            {
                "bare": lambda: anyio.run(run_bare, of),
                "gapline": lambda: subprocess.run(again, env=environment, capture_output=True, check=False),
            },
            rounds,
        )
        bare, ours = (statistics.median(times[who]) for who in ("bare", "gapline"))
        print(f"rerun of one agent: {ours:.2f} s, bare {bare:.2f} s: bare + {ours - bare:.2f} s")


def _inventory(fleet: LoopbackFleet, folder: Path) -> Path:
    host = fleet.hosts(1)[0]
    path = folder / "fleet.yaml"
    path.write_text(
        f"version: 1\nhosts:\n  {host.name}:\n    address: {host.address}\n    port: {host.port}\n"
        f"    user: {host.user}\n"
        f"    identity: {fleet.identity}\n    known_hosts: {fleet.known_hosts}\n    containers: none\n"
    )
    return path


def peak_memory() -> float:
    """Of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
