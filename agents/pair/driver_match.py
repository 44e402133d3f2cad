"""Pair agent `pair.driver_match`: do the container's driver libraries fit the host's kernel module?"""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.library_listing import CacheEntry, DriverLibraries, Library, aside
from gapline.agents.host.nvidia.fact import LoadedDriver, NvidiaDriver
from gapline.orchestrator.model.agent import Code, Facts, Layer, PairAgent
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity
from gapline.orchestrator.model.limit import Limits
from gapline.orchestrator.model.outcome import NotApplicable, Outcome, judged
from gapline.orchestrator.model.problem import Problem, ProblemKind

AGENT_ID = "pair.driver_match"
_NAMES = {
    "libcuda.so": Severity.CRITICAL,
    "libnvidia-ml.so": Severity.CRITICAL,
    "libnvidia-ptxjitcompiler.so": Severity.HIGH,  # only programs that compile PTX at run time need it
}

CODES = (
    Code(
        code="driver.version_mismatch",
        title="The container's driver library has another version than the kernel module",
        meaning="The user space and the kernel module of one driver must have the same version. Otherwise NVML fails "
        "with error 18, 'Driver/library version mismatch', CUDA with error 803, and the host's log shows 'NVRM: API "
        "mismatch'. Typical after a driver update on the host: every GPU container must follow.",
    ),
    Code(
        code="driver.link_elsewhere",
        title="The right driver library is there, but the link leads to another version",
        meaning="Programs load libcuda.so.1 and libnvidia-ml.so.1. When the image brings a version of its own, "
        "`ldconfig` lets these links lead to the newer one, and the version that fits the kernel module is never used "
        "(libnvidia-container issue 266).",
    ),
)


def judge(facts: Facts, _: Limits) -> Outcome:
    """What programs in the container would load, against the module that is loaded."""
    libraries, driver = facts.of(DriverLibraries), facts.of(NvidiaDriver)
    if driver.loaded is None:
        return NotApplicable("the host's NVIDIA kernel module is not loaded, so there is no version to fit", libraries)
    return judged(libraries, tuple(_findings(libraries, driver.loaded)), tuple(_unseen(libraries)))


def _unseen(libraries: DriverLibraries) -> Iterator[Problem]:
    """Without a version there is nothing to compare, and that is not the same as fitting."""
    for name in ("libcuda.so", "libnvidia-ml.so"):
        used = libraries.loaded(name)
        unread = used is None or used.version is None or aside(used.path)
        if unread and not libraries.copies(name) and not any(one.name == name for one in libraries.mapped):
            yield Problem(
                kind=ProblemKind.UNSEEN,
                detail=f"no copy of {name} with a version in its name was found in the container",
                hint="See container.driver_libraries; a copy that only LD_LIBRARY_PATH names is not looked for.",
            )


def _findings(libraries: DriverLibraries, driver: LoadedDriver) -> Iterator[Finding]:
    for name, severity in _NAMES.items():
        used = libraries.loaded(name)
        copies = libraries.copies(name)
        if used is not None and used.version is not None:
            if used.version != driver.version and not aside(used.path):
                fitting = tuple(copy for copy in copies if copy.version == driver.version)
                yield _mismatch(name, severity, used, driver, fitting)
        elif copies and all(copy.version != driver.version for copy in copies):
            yield _mismatch(name, severity, copies[0], driver, ())


def _mismatch(
    name: str, severity: Severity, used: CacheEntry | Library, driver: LoadedDriver, fitting: tuple[Library, ...]
) -> Finding:
    known = isinstance(used, CacheEntry) or used.is_soname
    return Finding(
        code="driver.link_elsewhere" if fitting else "driver.version_mismatch",
        subject=name,
        severity=severity,
        title=f"{name} in the container is {used.version}, the host's kernel module is {driver.version}"
        + (", and the fitting copy beside it is not used" if fitting else ""),
        observed=f"{used.path}: version {used.version}",
        expected=f"version {driver.version}, as /proc/driver/nvidia/version says",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED if known else Confidence.INFERRED,
        evidence=(used.evidence, driver.evidence, *(copy.evidence for copy in fitting)),
        origin="NVIDIA NVML API, NVML_ERROR_LIB_RM_VERSION_MISMATCH (18)",
        remedy=_relink(fitting[0], used) if fitting else _install(driver.version, used.version or ""),
    )


def _relink(fitting: Library, used: CacheEntry | Library) -> Remedy:
    return Remedy(
        now=f"In the container: remove the driver packages that brought version {used.version}, then `ldconfig`; at "
        f"once, until the next ldconfig: `ln -sf {fitting.path} {fitting.path.rpartition('.so')[0]}.so.1`.",
        lasting="Build the image without driver libraries: packages such as libnvidia-compute or nvidia-utils do not "
        "belong in an image whose libraries are mounted in or installed to fit the host.",
        undo="Install the removed packages again.",
        cost="GPU processes in the container must be restarted.",
        risk=Risk.R2,
        restarts="the inference service",
        verify_agent=AGENT_ID,
    )


def _install(wanted: str, present: str) -> Remedy:
    return Remedy(
        now=f"In the container, install the user space of {wanted} without its kernel part: "
        f"`sh NVIDIA-Linux-x86_64-{wanted}.run --no-kernel-modules`, or the distribution's packages pinned to "
        f"{wanted}; remove {present}.",
        lasting="Update host and containers together, and pin the version in both. Never install kernel modules or "
        "DKMS packages in a container.",
        undo=f"Install {present} again.",
        cost="GPU processes in the container must be restarted.",
        risk=Risk.R2,
        restarts="the inference service",
        verify_agent=AGENT_ID,
    )


AGENT = PairAgent(
    id=AGENT_ID,
    title="Driver libraries against the kernel module",
    layer=Layer.CONTAINER,
    needs=(DriverLibraries, NvidiaDriver),
    judge=judge,
    codes=CODES,
)
