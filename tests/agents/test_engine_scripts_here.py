"""The scripts about inference engines on this machine, with a program that holds files named like NVIDIA's nodes open.

They must find it, tell what is allowed of its command line, environment and log, and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapline.agents.container.shm_reading import SHM, container_shm
from gapline.agents.engine.log import HOST_LOG, engine_logs
from gapline.agents.engine.process import EngineProcess, engine_processes
from gapline.agents.engine.reading import HOST_ENGINE
from gapline.orchestrator.model.capture import Capture
from gapline.orchestrator.model.source import Script

SHELLS = [pytest.param(("dash",), id="dash"), pytest.param(("bash",), id="bash")]
PROGRAM = "import sys; held = [open(path) for path in sys.argv[1:3]]; print('ready', flush=True); sys.stdin.read()"
ARGUMENTS = [
    "--tensor_parallel_size=2",
    "--enforce-eager",
    "--api-key",
    "sk-4711",
    "--max-model-len",
    "4096",
    "--dtype",
]
ARGUMENTS += ["--served-model-name", "secret-model", "--quantization", "http://user:hunter2@host/"]
VARIABLES = {
    "NCCL_P2P_DISABLE": "1",
    "VLLM_API_KEY": "sk-4712",
    "LD_PRELOAD_X": "hunter3",
    "NCCL_DEBUG": "INFO\nCUDA_LAUNCH_BLOCKING=hunter4",
}
LOG = """\
INFO 11-30 [api_server.py:1] vLLM API server version 0.14.1 api_key=sk-4713
INFO 11-30 [cuda.py:9] Using FLASHINFER attention backend out of potential backends
prompt: 'hunter5' Using Flash Attention backend.
WARNING Config file not found at /opt/configs/E=128,N=704,device_name=NVIDIA_L40S.json for hunter6
"""


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """A shell of a host; busybox's find does not know -lname."""
    words: tuple[str, ...] = request.param
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    return words


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program that holds two "nodes" open and writes its log into a file."""
    nodes = [tmp_path / name for name in ("nvidia-uvm", "nvidia3")]
    for node in nodes:
        node.touch()
    log = tmp_path / "engine.log"
    log.write_text(LOG)
    with log.open("ab") as out:
        argv = [sys.executable, "-c", PROGRAM, *map(str, nodes), *ARGUMENTS]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, env={**os.environ, **VARIABLES}) as program:
            while "ready" not in log.read_text():
                assert program.poll() is None
            yield program
            program.communicate(b"")


def run(shell: tuple[str, ...], source: Script, nodes: Path, **variables: str) -> Capture:
    """The script's capture, with the folder of the nodes in place of /dev; it must stay silent on standard error."""
    text = source.text.replace("/dev/nvidia", f"{nodes}/nvidia").replace("/dev/\\(nvidia", f"{nodes}/\\(nvidia")
    given = {**os.environ, "CGROUP": "", **variables}
    done = subprocess.run([*shell, "-c", text], capture_output=True, check=False, env=given)
    assert (done.returncode, done.stderr) == (0, b"")
    return Capture("here", source.key, source.name, done.stdout)


def found(capture: Capture, program: subprocess.Popen[bytes]) -> EngineProcess:
    """The program among the processes of the capture."""
    processes, _, searched = engine_processes(capture)
    assert searched
    return next(process for process in processes if process.pid == program.pid)


def test_process(shell: tuple[str, ...], engine: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """What the kernel says about it, and the settings that are allowed."""
    process = found(run(shell, HOST_ENGINE, tmp_path), engine)
    assert process.cuda
    assert process.gpus == (3,)
    assert process.parent == os.getpid()
    assert process.cpus == len(os.sched_getaffinity(0))
    assert sum(process.memory_kib.values()) > 0
    assert [(one.name, one.value) for one in process.options] == [
        ("--tensor-parallel-size", "2"),
        ("--enforce-eager", ""),
        ("--max-model-len", "4096"),
        ("--quantization", None),
    ]
    told = {one.name: one.value for one in process.environment}
    assert told["NCCL_P2P_DISABLE"] == "1"
    assert told["NCCL_DEBUG"] is None
    assert "CUDA_LAUNCH_BLOCKING" not in told


def test_no_secret_leaves(shell: tuple[str, ...], engine: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Neither from the command line nor from the environment nor from the log."""
    assert engine.poll() is None
    texts = [run(shell, source, tmp_path).text for source in (HOST_ENGINE, HOST_LOG)]
    assert [word for word in ("sk-47", "hunter", "secret", "prompt") for text in texts if word in text] == []


def test_log(shell: tuple[str, ...], engine: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Known phrases, in their order, without what stands around them."""
    assert engine.poll() is None
    logs = {log.name: log for log in engine_logs(run(shell, HOST_LOG, tmp_path))}
    assert [phrase.text for phrase in logs["engine.log"].phrases] == [
        "vLLM API server version 0.14.1",
        "Using FLASHINFER attention backend",
        "Using Flash Attention backend",
        "Config file not found at /opt/configs/E=128,N=704,device_name=NVIDIA_L40S.json",
    ]


def test_shared_memory(shell: tuple[str, ...], tmp_path: Path) -> None:
    """The size of this machine's own /dev/shm, or why there is none."""
    view = container_shm(run(shell, SHM, tmp_path, INIT=str(os.getpid()))).views[0]
    if view.state == "seen":
        system = os.statvfs("/dev/shm")  # noqa: S108
        assert view.size_bytes == system.f_bsize * system.f_blocks
    else:
        assert not Path("/dev/shm").is_dir()  # noqa: S108
