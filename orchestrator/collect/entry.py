"""Why a shell did not start or did not finish: the login shell, sudo's, or one inside a container."""

from __future__ import annotations

import re

from gapline.orchestrator.collect.diagnose import (
    SUDO_REFUSAL,
    dropped,
    first_line,
    root_needed,
    sudo_refused,
    timed_out,
)
from gapline.orchestrator.collect.frames import Frame
from gapline.orchestrator.collect.group import Group
from gapline.orchestrator.inventory.host import Become
from gapline.orchestrator.model.problem import Problem, ProblemKind

_NOT_RUNNING = re.compile(r"Failed to get init pid|is not running|not defined|does not exist")
_NO_PROGRAM = ("126", "127")
_KILLED = ("124", "137", "143")


def shell_problem(exit_status: int | None, out: bytes, err: bytes, become: Become) -> Problem:
    """Why the script did not begin: what was said on standard error, or else on standard output."""
    said = err.decode("utf-8", "backslashreplace").strip() or out.decode("utf-8", "backslashreplace").strip()
    if become is Become.SUDO and (match := SUDO_REFUSAL.search(said)):
        line = next((one for one in said.split("\n") if match.group(0) in one), said)
        return sudo_refused(line, "Allow `sh -s` without a password in sudoers, or use `become: sudo_reads`.")
    if become is Become.SUDO and exit_status in (126, 127):
        return Problem(kind=ProblemKind.COMMAND_MISSING, detail="sudo is not installed", hint="apt install sudo")
    status = "without an exit status" if exit_status is None else f"with exit status {exit_status}"
    detail = f"the shell ended {status} before it ran anything"
    return Problem(
        kind=ProblemKind.FAILED,
        detail=f"{detail}: {first_line(said)}" if said else detail,
        hint="Check that this user may run commands there: `ssh HOST sh -c true`.",
    )


def container_problem(group: Group, frame: Frame, said: bytes, *, answered: bool) -> Problem:
    """Why items inside a container have no answer, from the end of `lxc-attach` and what it `said`."""
    error = said.decode("utf-8", "backslashreplace").strip()
    name, status = group.container, frame.status or ""
    if status == "d":
        return root_needed()
    if _NOT_RUNNING.search(error) and not answered:
        return Problem(kind=ProblemKind.NOT_RUNNING, detail=f"container {name} is not running: {first_line(error)}")
    if status == "a" or (status in _KILLED and frame.seconds >= group.seconds - 0.05):
        return _too_slow(group, answered=answered)
    if status in _NO_PROGRAM and "lxc-attach" in error and "not found" in error:
        return Problem(kind=ProblemKind.COMMAND_MISSING, detail="lxc-attach is not installed", hint="apt install lxc")
    if answered:
        return dropped(f"our shell in container {name} was ended (status {status}): did the container stop?")
    detail = "it has no /bin/sh" if status in _NO_PROGRAM else f"lxc-attach ended with status {status}"
    return Problem(
        kind=ProblemKind.NOT_ENTERED,
        detail=f"container {name}: {detail}" + (f": {first_line(error)}" if error else ""),
        hint=f"Try `lxc-attach -n {name} -- /bin/sh` on the host.",
    )


def _too_slow(group: Group, *, answered: bool) -> Problem:
    if answered:
        return timed_out(f"container {group.container} did not answer everything within {group.seconds} s")
    return Problem(
        kind=ProblemKind.NOT_ENTERED,
        detail=f"container {group.container} let nobody in within {group.seconds} s",
        hint=f"It may be frozen or locked up: `lxc-info -n {group.container} -s` on the host.",
    )
