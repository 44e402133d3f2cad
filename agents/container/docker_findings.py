"""Judgements on Docker within a container."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.container.docker_reading import NestedDocker
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.docker"

CODES = (
    Code(
        code="docker.stale_cdi",
        title="A CDI specification names a driver library that is not there",
        meaning="It was generated for another driver version. Docker mounts what it names, and a container that asks "
        "for a GPU does not start.",
    ),
    Code(
        code="docker.cgroup_hook",
        title="The NVIDIA hook will try to change a device policy that it may not change",
        meaning="In an unprivileged container the kernel refuses: 'bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation "
        "not permitted', and the Docker container does not start.",
    ),
    Code(
        code="docker.slow_storage",
        title="Docker copies every layer of every container",
        meaning="The `vfs` driver has no copy on write: each container is a full copy of its image, which fills the "
        "disk and takes minutes to start. Docker falls back to it where nothing else works on the container's file "
        "system.",
    ),
    Code(
        code="docker.no_gpu_runtime",
        title="Docker cannot give GPUs to its containers",
        meaning="It has neither the NVIDIA runtime nor a CDI specification, so `--gpus` and `--device "
        "nvidia.com/gpu=…` fail. No harm where the engine runs outside of Docker.",
    ),
)


def docker_findings(fact: NestedDocker) -> Iterator[Finding]:
    """All of them."""
    yield from _stale_cdi(fact)
    yield from _cgroup_hook(fact)
    yield from _slow_storage(fact)
    yield from _no_runtime(fact)


def _stale_cdi(fact: NestedDocker) -> Iterator[Finding]:
    for spec in fact.cdi:
        if not spec.present:
            yield Finding(
                code="docker.stale_cdi",
                subject=spec.name,
                severity=Severity.HIGH,
                title=f"{spec.name} names {spec.library}, which is not there",
                observed=f"{spec.library} is absent",
                expected="the library of the driver that is installed",
                effect=Effect.BREAKS,
                confidence=Confidence.VERIFIED,
                evidence=(spec.evidence,),
                remedy=_remedy(
                    f"In the container: `nvidia-ctk cdi generate --output=/etc/cdi/{spec.name}` and start the Docker "
                    "container again.",
                    "After each change of the driver in the container; toolkits from 1.18 on bring "
                    "nvidia-cdi-refresh.service for that.",
                ),
            )


def _cgroup_hook(fact: NestedDocker) -> Iterator[Finding]:
    mode = fact.toolkit.get("mode", "auto")
    if fact.privileged or "nvidia" not in fact.runtimes or fact.toolkit.get("no-cgroups") == "true":
        return
    if mode == "legacy" or (mode == "auto" and _older(fact.toolkit.get("version", ""), (1, 18))):
        yield Finding(
            code="docker.cgroup_hook",
            subject="no-cgroups",
            severity=Severity.HIGH,
            title="Docker in an unprivileged container, and the NVIDIA hook sets device rules",
            observed=f"mode {mode}, no-cgroups {fact.toolkit.get('no-cgroups', 'not set')}, version "
            f"{fact.toolkit.get('version') or 'unknown'}",
            expected="no-cgroups = true, or CDI",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.INFERRED,
            evidence=_cited(fact, "map", "toolkit", "info"),
            origin="NVIDIA/libnvidia-container issue 154; blakeblackshear/frigate issue 8652",
            remedy=_remedy(
                "In the container: `nvidia-ctk config --set nvidia-container-cli.no-cgroups=true --in-place`, and "
                "start the Docker container again.",
                "The setting lasts. The device rules of the outer container still hold.",
            ),
        )


def _older(version: str, than: tuple[int, int]) -> bool:
    """An unknown version is not called old."""
    match = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})\.[0-9]{1,3}", version)
    return match is not None and (int(match[1]), int(match[2])) < than


def _slow_storage(fact: NestedDocker) -> Iterator[Finding]:
    if fact.storage == "vfs":
        yield Finding(
            code="docker.slow_storage",
            subject="vfs",
            severity=Severity.MEDIUM,
            title="Docker uses the storage driver vfs",
            observed="docker info: Storage Driver vfs",
            expected="overlay2 or overlayfs",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=_cited(fact, "info"),
            origin="Docker documentation, VFS storage driver: no copy on write, more space, lower performance",
            remedy=_remedy(
                "Find out what keeps overlay2 from working: `journalctl -u docker | grep -i overlay` in the container. "
                "On ZFS it takes OpenZFS 2.2 or newer, or /var/lib/docker on a volume with ext4 or XFS of its own (a "
                "mount point of the container).",
                '`"storage-driver": "overlay2"` in /etc/docker/daemon.json, so that falling back is an error; images '
                "must be pulled again.",
            ),
        )


def _no_runtime(fact: NestedDocker) -> Iterator[Finding]:
    if fact.asked and "dockerd" in fact.daemons and not fact.has_nvidia:
        yield Finding(
            code="docker.no_gpu_runtime",
            subject="nvidia",
            severity=Severity.INFO,
            title="Docker in the container has no NVIDIA runtime and no CDI specification",
            observed=f"runtimes: {', '.join(fact.runtimes) or 'none named'}",
            expected="the NVIDIA runtime or a CDI specification, if Docker is to run the engine",
            effect=Effect.DOCUMENTED,
            confidence=Confidence.VERIFIED,
            evidence=_cited(fact, "info"),
            origin="NVIDIA Container Toolkit, Installation Guide, Configuring Docker",
            remedy=_remedy(
                "In the container, with the package nvidia-container-toolkit: `nvidia-ctk runtime configure "
                "--runtime=docker`, then `systemctl restart docker`.",
                "The setting lasts.",
            ),
        )


def _cited(fact: NestedDocker, *kinds: str) -> tuple[Evidence, ...]:
    return tuple(fact.evidence[kind] for kind in kinds if kind in fact.evidence) or (fact.evidence["end"],)


def _remedy(now: str, lasting: str) -> Remedy:
    return Remedy(
        now=now,
        lasting=lasting,
        undo="Put the file back as it was and restart Docker.",
        cost="Docker containers stop while their daemon restarts.",
        risk=Risk.R2,
        restarts="the Docker containers concerned",
        verify_agent=AGENT_ID,
    )
