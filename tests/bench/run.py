"""Runs the benchmarks and prints ratios of things measured side by side. Nothing here passes or fails.

As root it moves into a network namespace of its own first, since a hundred hosts need a hundred loopback addresses
and the server must not be reachable from elsewhere.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from gapline.orchestrator.cli import garbage
from gapline.orchestrator.inventory.host import Containers
from gapline.orchestrator.run_log import quiet_unless_logged
from tests.bench import fan_out, far_away, many_replayed, start_up
from tests.bench.loopback_fleet import in_own_network

BIG = Path(__file__).parent / "big_host"
_INSIDE = "GAPLINE_BENCH_INSIDE"
_NEED_ROOT = ("fan-out", "cpu", "far", "rerun")


def main() -> int:
    """Run those that were named, or all."""
    which = ("start-up", "fan-out", "cpu", "far", "rerun", "replay")
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(which)}; default: all")
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=fan_out.ROUNDS)
    parser.add_argument("--replayed", type=int, default=1000)
    options = parser.parse_args()
    names = options.names or list(which)
    if unknown := sorted(set(names) - set(which)):
        parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(which)}")
    if os.geteuid() == 0 and _INSIDE not in os.environ:
        os.environ[_INSIDE] = "1"
        return in_own_network(sys.argv)
    print(
        f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, Python {platform.python_version()}"
    )
    quiet_unless_logged()
    garbage.hardly_looked_for()  # as the command line does
    for name in names:
        if name in _NEED_ROOT and os.geteuid() != 0:
            print(f"{name}: skipped, it needs root for a network namespace and a bench user", file=sys.stderr)
            continue
        run(name, options)
    return 0


def run(name: str, options: argparse.Namespace) -> None:
    """Run one."""
    match name:
        case "start-up":
            start_up.start_up()
        case "fan-out":
            fan_out.fan_out(options.hosts, options.rounds)
        case "cpu":
            fan_out.marginal_cpu(None)
            fan_out.marginal_cpu(BIG)
            fan_out.marginal_cpu(BIG, Containers.AUTO)
        case "far":
            far_away.far_away()
        case "rerun":
            fan_out.rerun(options.rounds)
        case "replay":
            many_replayed.many_replayed(BIG, options.replayed)
        case _:
            raise ValueError(name)


if __name__ == "__main__":
    sys.exit(main())
