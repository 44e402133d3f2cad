"""Judgements on the driver libraries of a container that need nothing but the libraries."""

from __future__ import annotations

from collections.abc import Iterator

from gapline.agents.container.library_listing import COMPAT, STUBS, CacheEntry, DriverLibraries, Library
from gapline.orchestrator.model.agent import Code
from gapline.orchestrator.model.evidence import Evidence
from gapline.orchestrator.model.finding import Confidence, Effect, Finding, Remedy, Risk, Severity

AGENT_ID = "container.driver_libraries"
NAMES = ("libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so")
_INSTALL = (
    "install the host's driver version without its kernel part (`NVIDIA-Linux-….run --no-kernel-modules`, or pinned "
    "packages)"
)

CODES = (
    Code(
        code="libraries.several_versions",
        title="Several versions of a driver library lie side by side",
        meaning="The loader takes the one that the SONAME link names, and `ldconfig` lets that link lead to the newest "
        "version. The next `ldconfig`, which any package installation runs, can move it away from the version of the "
        "kernel module (libnvidia-container issue 266).",
    ),
    Code(
        code="libraries.stub",
        title="The loader finds a stub instead of the driver",
        meaning="`stubs/libcuda.so` is for linking on machines without a GPU; every call in it fails.",
    ),
    Code(
        code="libraries.compat",
        title="A CUDA compatibility package is in use",
        meaning="With `cuda-compat` in the loader's path programs get its libcuda instead of the driver's. NVIDIA "
        "supports that for data-centre GPUs and listed pairs of versions only (CUDA Compatibility guide).",
    ),
    Code(
        code="libraries.no_link",
        title="Programs cannot find a driver library that is there",
        meaning="They ask for libcuda.so.1 and libnvidia-ml.so.1. The file with the version in its name lies there, "
        "and "
        "no link of that name leads to it: `ldconfig` has not run since, or the link leads to a version that is gone.",
    ),
    Code(
        code="libraries.replaced",
        title="The driver library was replaced under a running engine",
        meaning="The engine still has the old file mapped and works. At its next start it gets the new one, which must "
        "then fit the host's kernel module: an upgrade within the container has changed the version.",
    ),
    Code(
        code="libraries.missing",
        title="The driver's user space is not in the container",
        meaning="The kernel module is the host's, but libcuda and libnvidia-ml must lie in the container, in the "
        "version of that module. They were found neither in the usual folders nor in the loader's cache.",
    ),
)


def findings(fact: DriverLibraries) -> Iterator[Finding]:
    """All findings, library by library."""
    if not fact.mapped and not any(fact.loaded(name) or fact.copies(name) for name in NAMES[:2]):
        yield _missing(fact)
    for name in NAMES:
        versions = sorted({copy.version for copy in fact.copies(name) if copy.version})
        if len(versions) > 1:
            yield _several(fact, name, versions)
        used = fact.loaded(name)
        if isinstance(used, CacheEntry) and STUBS.fullmatch(used.path):
            yield _stub(used)
        yield from _compat(fact, name, used)
        yield from _no_link(fact, name, used)
        yield from _replaced(fact, name, used)


def _several(fact: DriverLibraries, name: str, versions: list[str]) -> Finding:
    links = tuple(f for f in fact.files if f.name == name and f.is_soname and f.target)
    return Finding(
        code="libraries.several_versions",
        subject=name,
        severity=Severity.HIGH,
        title=f"{name} lies in the container in {len(versions)} versions: {', '.join(versions)}",
        observed="; ".join([*(c.path for c in fact.copies(name)), *(f"{f.path} -> {f.target}" for f in links)]),
        expected="one version, that of the host's kernel module",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=tuple(file.evidence for file in (*fact.copies(name), *links)),
        origin="NVIDIA/libnvidia-container issue 266; ldconfig(8): the link goes to the library with the highest "
        "version",
        remedy=Remedy(
            now="Remove the versions that are not the host's (see /proc/driver/nvidia/version), by the package that "
            "brought them (`dpkg -S FILE`) or by hand, then run `ldconfig`.",
            lasting="Do not install driver packages into the image by their version-free names; " + _INSTALL + ".",
            undo="Install the removed package again.",
            cost="GPU processes in the container must be restarted.",
            risk=Risk.R2,
            restarts="the inference service",
            verify_agent=AGENT_ID,
        ),
    )


def _stub(used: CacheEntry) -> Finding:
    return Finding(
        code="libraries.stub",
        subject=used.name,
        severity=Severity.HIGH,
        title=f"Programs that load {used.name} get a stub",
        observed=f"the loader's cache gives {used.path}",
        expected="the driver's own library, outside any `stubs` folder",
        effect=Effect.BREAKS,
        confidence=Confidence.VERIFIED,
        evidence=(used.evidence,),
        remedy=Remedy(
            now="Take the stubs folder out of /etc/ld.so.conf.d in the container and run `ldconfig`.",
            lasting="Name the folder at link time only (`-L`), in no loader configuration and no LD_LIBRARY_PATH.",
            undo="Put the folder back.",
            cost="None.",
            risk=Risk.R2,
            restarts="the inference service",
            verify_agent=AGENT_ID,
        ),
    )


def _compat(fact: DriverLibraries, name: str, used: CacheEntry | Library | None) -> Iterator[Finding]:
    """By the loader's cache, or by what a process has got through LD_LIBRARY_PATH."""
    mapped = next((one for one in fact.mapped if one.name == name and COMPAT.fullmatch(one.path)), None)
    if isinstance(used, CacheEntry) and COMPAT.fullmatch(used.path):
        yield _compat_in_use(f"{name}.1", f"the loader's cache gives {used.path}", used.version, used.evidence)
    elif mapped is not None:
        told = f"process {mapped.pid} has {mapped.path} mapped"
        yield _compat_in_use(f"{name}.1", told, mapped.version, mapped.evidence)


def _no_link(fact: DriverLibraries, name: str, used: CacheEntry | Library | None) -> Iterator[Finding]:
    copies = fact.copies(name)
    linked = any(file.name == name and file.is_soname and not file.dead for file in fact.files)
    if used or linked or not copies or name not in NAMES[:2] or any(one.name == name for one in fact.mapped):
        return
    dead = tuple(file for file in fact.files if file.name == name and file.dead)
    yield Finding(
        code="libraries.no_link",
        subject=name,
        severity=Severity.HIGH,
        title=f"{name}.1 leads nowhere, though {copies[0].path} is there",
        observed="; ".join(f"{file.path} -> {file.target}" for file in dead) or f"no {name}.1 in any usual folder",
        expected=f"{name}.1 -> {copies[0].path}",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=tuple(file.evidence for file in (*copies, *dead)),
        origin="ld.so(8): libraries are looked for by the name that the program asks for",
        remedy=Remedy(
            now="In the container: `ldconfig`, and see `ldconfig -p | grep libcuda`; without ldconfig (Alpine) "
            f"`ln -sf {copies[0].path} {copies[0].path.rpartition('.so')[0]}.so.1`.",
            lasting="Where files are mounted in one by one, mount the links too, or run `ldconfig` at the start.",
            undo=f"`rm {copies[0].path.rpartition('.so')[0]}.so.1`.",
            cost="None.",
            risk=Risk.R1,
            restarts="the inference service",
            verify_agent=AGENT_ID,
        ),
    )


def _replaced(fact: DriverLibraries, name: str, used: CacheEntry | Library | None) -> Iterator[Finding]:
    for one in fact.mapped:
        if one.name != name or not one.deleted or used is None or used.version in (None, one.version):
            continue
        yield Finding(
            code="libraries.replaced",
            subject=name,
            severity=Severity.MEDIUM,
            title=f"Process {one.pid} still runs with {name} {one.version}; the next start gets {used.version}",
            observed=f"{one.path} is deleted and still mapped; {used.path} is {used.version}",
            expected="the version that the engine has mapped",
            effect=Effect.BREAKS,
            confidence=Confidence.INFERRED,
            evidence=(one.evidence, used.evidence),
            remedy=Remedy(
                now=f"In the container: {_INSTALL}, before the engine is started again.",
                lasting="Hold the driver packages of the container (`apt-mark hold`), and leave them out of unattended "
                "upgrades; update host and containers together.",
                undo="`apt-mark unhold`, and install the other version.",
                cost="None while the engine runs.",
                risk=Risk.R1,
                restarts="nothing",
                verify_agent="pair.driver_match",
            ),
        )
        return


def _compat_in_use(soname: str, told: str, version: str | None, evidence: Evidence) -> Finding:
    return Finding(
        code="libraries.compat",
        subject=soname,
        severity=Severity.MEDIUM,
        title=f"Programs that load {soname} get the compatibility package's copy",
        observed=told + (f", version {version}" if version else ""),
        expected="the driver's own library, or a pair of versions that NVIDIA lists",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.VERIFIED,
        evidence=(evidence,),
        origin="NVIDIA, CUDA Compatibility guide, forward compatibility",
        remedy=Remedy(
            now="Where the driver is new enough for the CUDA version in use, remove the cuda-compat package and run "
            "`ldconfig`.",
            lasting="Update the host's driver instead of carrying a compatibility package in the container.",
            undo="Install the cuda-compat package again.",
            cost="A CUDA version that is newer than the driver then no longer starts.",
            risk=Risk.R2,
            restarts="the inference service",
            verify_agent=AGENT_ID,
        ),
    )


def _missing(fact: DriverLibraries) -> Finding:
    return Finding(
        code="libraries.missing",
        subject="libcuda.so",
        severity=Severity.MEDIUM,
        title="No NVIDIA driver library was found in the container",
        observed="neither libcuda nor libnvidia-ml in the usual folders or the loader's cache",
        expected="both, in the version of the host's kernel module",
        effect=Effect.DOCUMENTED,
        confidence=Confidence.INFERRED,
        evidence=(fact.end,),
        origin="NVIDIA driver README, installed components: libcuda and libnvidia-ml",
        remedy=Remedy(
            now="In the container, " + _INSTALL + ".",
            lasting="Repeat it after every driver change on the host, for every GPU container.",
            undo="Uninstall it (`nvidia-uninstall`, or the packages).",
            cost="None for others.",
            risk=Risk.R1,
            restarts="the inference service",
            verify_agent=AGENT_ID,
        ),
    )
