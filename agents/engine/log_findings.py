"""Judgements on what an engine's own log says since its last start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gapline.agents.engine.fact import Engine
from gapline.agents.engine.log import EngineLog, Phrase
from gapline.agents.engine.remedies import restart
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Severity

_ON_CPU = r"inference compute.{0,4} id=cpu|no compatible GPUs were discovered|no usable GPU found"
_ON_GPU = r"inference compute.{0,4} id=(?!cpu)|ggml_cuda_init: found [1-9]"
_DISCOVERY = r"failure during .*GPU discovery|bootstrap discovery took"
_LAYERS = re.compile(r"offloaded ([0-9]+)/([0-9]+) layers to GPU")
_MOE = re.compile(r"(E=[0-9]+,N=[0-9]+),device_name=([A-Za-z0-9_-]+)")


def codes(area: str) -> tuple[Code, ...]:
    """The codes of this module below `area`."""
    return (
        Code(
            code=f"{area}.on_cpu",
            title="The engine found no GPU and computes on the CPU",
            meaning="It goes on without an error. Where all nodes, libraries and versions are right, the first CUDA "
            "call may have taken longer than the engine waits: it initialises every GPU that nobody holds.",
        ),
        Code(
            code=f"{area}.partly_on_cpu",
            title="Some layers of the model are computed on the CPU",
            meaning="Each token then waits for the CPU and the memory of the host, which are many times slower.",
        ),
        Code(
            code=f"{area}.untuned_moe",
            title="The engine has no tuned MoE kernel for this GPU and model",
            meaning="vLLM looks up tile sizes by the number of experts, their width and the GPU's exact name, and "
            "takes defaults where it has no file. The edition is a part of that name.",
        ),
        Code(
            code=f"{area}.no_native_kernel",
            title="The engine computes a quantised model in a wider format",
            meaning="vLLM then only stores weights in 4 or 8 bits and multiplies in 16 (Marlin). That is right on "
            "GPUs without such units; on others the kernels were not built for them, or just the weights are so.",
        ),
    )


def log_findings(engine: Engine, area: str, agent: str) -> Iterator[Finding]:
    """One of each kind for each log."""
    for log in engine.logs:
        yield from _on_cpu(log, engine, area, agent)
        yield from _partly(log, area, agent)
        yield from _untuned(log, area, agent)
        yield from _no_native(log, area, agent)


def _on_cpu(log: EngineLog, engine: Engine, area: str, agent: str) -> Iterator[Finding]:
    """Only where nothing says otherwise: not the log, and no CUDA process in its place."""
    said = log.matching(_ON_CPU)
    if not said or log.matching(_ON_GPU) or engine.cuda:
        return
    slow = log.matching(_DISCOVERY)
    yield _finding(
        f"{area}.on_cpu",
        log,
        (*said, *slow),
        _Words(
            Severity.HIGH,
            "The engine runs on the CPU" + (": its search for GPUs did not end in time" if slow else ""),
            "the GPUs of this machine",
            "The engine's own words",
            Effect.BREAKS,
        ),
        restart(
            "See that every GPU agent is clean, then restart the engine. Where its search for GPUs took too long: "
            "`nvidia-smi -pm 1` on the host, or the service nvidia-persistenced, keeps GPUs initialised.",
            agent,
            lasting="On the host: `systemctl enable --now nvidia-persistenced`.",
        ),
    )


def _partly(log: EngineLog, area: str, agent: str) -> Iterator[Finding]:
    for phrase in log.matching(_LAYERS.pattern)[-1:]:
        match = _LAYERS.search(phrase.text)
        if match and int(match[1]) < int(match[2]):
            yield _finding(
                f"{area}.partly_on_cpu",
                log,
                (phrase,),
                _Words(
                    Severity.HIGH,
                    f"Only {match[1]} of {match[2]} layers are on the GPU",
                    f"{match[2]} of {match[2]}",
                    "llama.cpp, README of llama-server, --n-gpu-layers",
                ),
                restart(
                    "Raise `--n-gpu-layers` (Ollama: `num_gpu`), or choose a smaller quantisation, context or batch so "
                    "that all layers fit into the GPU's memory.",
                    agent,
                ),
            )


def _untuned(log: EngineLog, area: str, agent: str) -> Iterator[Finding]:
    missing = [(phrase, match) for phrase in log.phrases if (match := _not_found(phrase))]
    for _, match in missing[:1]:
        yield _finding(
            f"{area}.untuned_moe",
            log,
            tuple(one for one, _ in missing),
            _Words(
                Severity.MEDIUM,
                f"No tuned MoE kernel for {match[1]} on {match[2].replace('_', ' ')}",
                f"a file of tile sizes for {match[1]} and this GPU",
                "vLLM, fused_moe.py: 'Using default MoE config. Performance might be sub-optimal!'",
            ),
            restart(
                "Run vLLM's benchmarks/kernels/benchmark_moe.py with `--tune` for this model on this GPU, and put the "
                "file it writes where the log says, or into the folder that VLLM_TUNED_CONFIG_FOLDER names.",
                agent,
                cost="Tuning takes the GPU for some hours; the engine loads its model again.",
            ),
        )


def _not_found(phrase: Phrase) -> re.Match[str] | None:
    return _MOE.search(phrase.text) if phrase.text.startswith("Config file not found") else None


def _no_native(log: EngineLog, area: str, agent: str) -> Iterator[Finding]:
    said = log.matching(r"does not have native support for FP[48]")
    if said:
        width = said[0].text.rpartition("FP")[2][:1]
        yield _finding(
            f"{area}.no_native_kernel",
            log,
            (*said, *log.matching(r"LinearKernel|MoE backend")),
            _Words(
                Severity.MEDIUM,
                f"FP{width} weights are computed in 16 bits",
                f"kernels that multiply in FP{width}, where the GPU has them",
                "vLLM's own warning: this may degrade performance for compute-heavy workloads",
            ),
            restart(
                "On a GPU with such units (FP8 from Ada on, FP4 from Blackwell on): an engine built for its "
                "architecture, and a checkpoint whose activations are quantised too. Older ones have none.",
                agent,
            ),
        )


class _Words(NamedTuple):
    severity: Severity
    title: str
    expected: str
    origin: str
    effect: Effect = Effect.DOCUMENTED


def _finding(code: str, log: EngineLog, said: tuple[Phrase, ...], words: _Words, remedy: Remedy) -> Finding:
    return Finding(
        code=code,
        subject="log" if log.kind == "docker" else log.name,
        severity=words.severity,
        title=words.title,
        observed="; ".join(phrase.text for phrase in said)[:400],
        expected=words.expected,
        effect=words.effect,
        confidence=Confidence.VERIFIED if log.started else Confidence.INFERRED,
        evidence=tuple(phrase.evidence for phrase in said),
        origin=words.origin,
        remedy=remedy,
    )
