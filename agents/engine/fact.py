"""The engine as one fact, for a container or the bare host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.engine.log import EngineLog, engine_logs
from gapline.agents.engine.process import EngineGpu, EngineProcess, Setting, engine_processes
from gapline.orchestrator.model.capture import Captures
from gapline.orchestrator.model.outcome import Fact
from gapline.orchestrator.model.problem import Problem

_DOCKER = re.compile(r"(?:/docker/|/docker-)([0-9a-f]{12})[0-9a-f]{0,52}(?:\.scope)?(?:/|$)")
_UNIT = re.compile(r"/([A-Za-z0-9@_.:\\-]{1,80}\.service)(?:/|$)")


class Engine(Fact):
    """CUDA processes with their ancestors, the host's GPUs, and what logs say."""

    processes: tuple[EngineProcess, ...]
    gpus: tuple[EngineGpu, ...]
    searched: bool  # False: the container's cgroup was not found
    logs: tuple[EngineLog, ...]
    log_problem: Problem | None  # why no log could be looked for

    @property
    def cuda(self) -> tuple[EngineProcess, ...]:
        """The processes that hold the UVM node open."""
        return tuple(process for process in self.processes if process.cuda)

    def line(self, process: EngineProcess) -> Iterator[EngineProcess]:
        """A process and those that started it, nearest first."""
        by_pid = {one.pid: one for one in self.processes}
        at: EngineProcess | None = process
        for _ in range(6):
            if at is None:
                return
            yield at
            at = by_pid.get(at.parent)

    def options(self, process: EngineProcess) -> tuple[Setting, ...]:
        """Of the nearest command line that names any: engines overwrite those of their workers."""
        return next((one.options for one in self.line(process) if one.options), ())

    def environment(self, process: EngineProcess) -> tuple[Setting, ...]:
        """Of the process, or of the nearest that started it where a new title has overwritten it."""
        return next((one.environment for one in self.line(process) if one.environment), ())

    def group(self, process: EngineProcess) -> int:
        """The pid of the nearest process with options: that of the engine's command, which its workers share.

        An older ancestor says nothing: a shell, a supervisor or an init starts several engines.
        """
        return next((one.pid for one in self.line(process) if one.options), process.pid)

    def served_by(self, process: EngineProcess) -> str:
        """What runs it: a systemd unit, a Docker container, or nothing that its cgroup names."""
        if match := _DOCKER.search(process.cgroup):
            return f"Docker container {match[1]}"
        match = _UNIT.search(process.cgroup)
        return f"systemd unit {match[1]}" if match else ""


def read(captures: Captures) -> tuple[tuple[EngineProcess, ...], tuple[EngineGpu, ...], bool]:
    """The part that comes from `/proc`.

    Raises:
        CollectError: it could not be read.
        ParseError: it has an unknown form.
    """
    return engine_processes(captures.need("engine"))


def logs(captures: Captures) -> tuple[tuple[EngineLog, ...], Problem | None]:
    """What logs say, or why they were not looked for.

    Raises:
        ParseError: the answer has an unknown form.
    """
    problem = captures["log"].problem
    return (engine_logs(captures["log"]), None) if problem is None else ((), problem)
