"""PID 1 of the lab's PID namespace: runs one set-up command, then reaps orphans until its standard input ends.

When it exits the kernel kills everything that was ever started in the namespace, containers included.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys


def main() -> None:
    """Set up, say so on standard output, stay until the test process lets go of the pipe."""
    subprocess.run(sys.argv[1:], check=True, stdin=subprocess.DEVNULL)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not _input_ended():
        _reap()


def _input_ended() -> bool:
    readable, _, _ = select.select([sys.stdin], [], [], 0.2)
    return bool(readable) and os.read(0, 1) == b""


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


if __name__ == "__main__":
    main()
