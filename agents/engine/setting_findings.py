"""Judgements on options and variables that cost an engine speed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gapline.agents.engine.fact import Engine
from gapline.agents.engine.process import EngineProcess, Setting
from gapline.agents.engine.remedies import restart
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Severity

_NCCL = "NVIDIA NCCL User Guide, Environment Variables"
_ON = frozenset({"1", "true", "True", "yes", "on", "ON"})


class Slow(NamedTuple):
    """A variable with the values that cost speed."""

    severity: Severity
    says: str
    origin: str
    hurts: Callable[[str], bool]
    several_gpus: bool = False  # it costs something only where one engine spans several GPUs


def _on(value: str) -> bool:
    return value in _ON


_VARIABLES = {
    "CUDA_LAUNCH_BLOCKING": Slow(
        Severity.HIGH,
        "the CPU waits for each kernel before it launches the next",
        "CUDA C++ Programming Guide, CUDA_LAUNCH_BLOCKING: for debugging only",
        _on,
    ),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": Slow(
        Severity.HIGH,
        "each tensor is allocated from and given back to the driver",
        "PyTorch, CUDA environment variables: for debugging memory",
        _on,
    ),
    "VLLM_TRACE_FUNCTION": Slow(
        Severity.HIGH, "every Python call is written to a file", "vLLM, Troubleshooting: traces all function calls", _on
    ),
    "CUDA_FORCE_PTX_JIT": Slow(
        Severity.MEDIUM,
        "kernels that were built for this GPU are ignored and compiled anew",
        "CUDA C++ Programming Guide, CUDA_FORCE_PTX_JIT",
        _on,
    ),
    "GGML_CUDA_NO_PINNED": Slow(
        Severity.MEDIUM, "copies between host and GPU go through pageable memory", "llama.cpp, ggml-cuda.cu", bool
    ),
    "NCCL_P2P_DISABLE": Slow(
        Severity.MEDIUM,
        "GPUs reach each other through host memory only",
        f"{_NCCL}, NCCL_P2P_DISABLE",
        _on,
        several_gpus=True,
    ),
    "NCCL_P2P_LEVEL": Slow(
        Severity.MEDIUM,
        "GPUs reach each other through host memory only",
        f"{_NCCL}, NCCL_P2P_LEVEL: LOC never uses P2P",
        frozenset({"LOC", "0"}).__contains__,
        several_gpus=True,
    ),
    "NCCL_SHM_DISABLE": Slow(
        Severity.MEDIUM,
        "what P2P does not carry goes through the network stack instead of shared memory",
        f"{_NCCL}, NCCL_SHM_DISABLE",
        _on,
        several_gpus=True,
    ),
}
_EAGER = frozenset({"--enforce-eager", "--disable-cuda-graph"})


def codes(area: str) -> tuple[Code, ...]:
    """The codes of this module below `area`."""
    return (
        Code(
            code=f"{area}.eager",
            title="The engine runs without CUDA graphs",
            meaning="Each decode step then launches hundreds of kernels one by one from Python, and at small batches "
            "the GPU waits for the CPU. The option is for debugging, or for saving the memory that graphs take.",
        ),
        Code(
            code=f"{area}.slow_variable",
            title="An environment variable of the engine costs speed",
            meaning="A switch for debugging, or a work-around for a fault that was once seen, is still set: launches "
            "that block, no memory cache, no direct path between GPUs.",
        ),
    )


def setting_findings(engine: Engine, area: str, agent: str) -> Iterator[Finding]:
    """One for eager mode, and one for each variable, whichever process has it."""
    yield from _eager(engine, area, agent)
    for name, slow in _VARIABLES.items():
        for process in engine.cuda:
            hit = next((one for one in engine.environment(process) if one.name == name and one.value), None)
            if hit is None or not slow.hurts(hit.value or "") or (slow.several_gpus and not _spans(engine, process)):
                continue
            yield _variable(hit, slow, process, area, agent)
            break


def _spans(engine: Engine, process: EngineProcess) -> bool:
    group = engine.group(process)
    return len({gpu for one in engine.cuda if engine.group(one) == group for gpu in one.gpus}) > 1


def _eager(engine: Engine, area: str, agent: str) -> Iterator[Finding]:
    for told, evidence, process in (*_from_options(engine), *_from_logs(engine)):
        yield Finding(
            code=f"{area}.eager",
            subject="cuda_graphs",
            severity=Severity.HIGH,
            title="The engine was started without CUDA graphs",
            observed=told + process,
            expected="CUDA graphs, the default",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=(evidence,),
            origin="vLLM, engine arguments, enforce_eager; SGLang, server arguments, disable_cuda_graph",
            remedy=restart(
                f"Start the engine without `{told}`.",
                agent,
                cost="Capturing graphs lengthens the start and takes some GPU memory; where that is short, capture "
                "fewer batch sizes.",
            ),
        )
        return


def _from_options(engine: Engine) -> Iterator[tuple[str, Evidence, str]]:
    for process in engine.cuda:
        options = engine.options(process)
        if any(option.name == "--no-enforce-eager" for option in options):
            continue
        for option in options:
            if option.name in _EAGER:
                yield option.name, option.evidence, f", process {process.pid} ({process.name})"


def _from_logs(engine: Engine) -> Iterator[tuple[str, Evidence, str]]:
    for log in engine.logs:
        for phrase in log.matching(r"^(enforce_eager|disable_cuda_graph)=True$") if log.started else ():
            yield phrase.text, phrase.evidence, f", by the log of {log.name}"


def _variable(hit: Setting, slow: Slow, process: EngineProcess, area: str, agent: str) -> Finding:
    return Finding(
        code=f"{area}.slow_variable",
        subject=hit.name,
        severity=slow.severity,
        title=f"{hit.name}={hit.value}: {slow.says}",
        observed=f"{hit.name}={hit.value} for process {process.pid} ({process.name})",
        expected="not set",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(hit.evidence,),
        origin=slow.origin,
        remedy=restart(
            f"Find out why it was set; then start the engine without {hit.name}. Where P2P or shared memory once hung, "
            "test that first with `all_reduce_perf` from nccl-tests."
            if slow.several_gpus
            else f"Start the engine without {hit.name}.",
            agent,
        ),
    )
