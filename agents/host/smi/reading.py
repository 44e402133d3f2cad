"""From captures to the states of the GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gapline.agents.host.nvidia.reading import SOURCES as DRIVER
from gapline.agents.host.pci_gpu import PCI_GPUS, PciGpu, address, nvidia_gpus, pci_gpus
from gapline.agents.host.smi.document import Element, document, messages
from gapline.agents.host.smi.fact import GpuStates, SaidOfGpu
from gapline.agents.host.smi.gpu import bus_id, gpu_state
from gapline.agents.host.smi.value import words
from gapline.orchestrator.model.capture import Capture, Captures
from gapline.orchestrator.model.errors import CollectError, ParseError
from gapline.orchestrator.model.problem import Problem, ProblemKind
from gapline.orchestrator.model.source import KIB, Script, Source

# The shell is there to filter on the target: lists of supported clocks (nine tenths of the output) and serial numbers
# are left out, and the name of a process, which can be its whole command line with several lines, ends at its first
# blank. What is no element and no message of nvidia-smi is the rest of such a name.
_MESSAGES = "Unable to determine|NVIDIA-SMI|No devices|Failed to initialize|WARNING: infoROM"
_FILTER = (
    r"/^[[:space:]]*(<|" + _MESSAGES + r")/!d; /<\/?supported_/d; /<value>/d; /<(serial|pdi|chassis_serial_number)>/d; "
    r"/^[[:space:]]*<\/process_name>/d; s|<process_name>([^[:space:]<]*).*|<process_name>\1</process_name>|"
)
_QUERY = (
    "command -v nvidia-smi >/dev/null || { echo nvidia-smi is not installed >&2; exit 3; }; "
    f"x=$(nvidia-smi -q -x); s=$?; printf '%s\\n' \"$x\" | sed -E '{_FILTER}'; exit $s"
)
SOURCES: dict[str, Source] = {
    "pci": PCI_GPUS,
    "gpus": DRIVER["gpus"],
    "states": Script("nvidia-smi -q -x", _QUERY, timeout=20, wakes_gpu=True, limit=512 * KIB),
}


def read(captures: Captures) -> GpuStates:
    """The fact.

    Raises:
        CollectError: nvidia-smi could not be asked, or said nothing of any GPU.
        ParseError: its answer has an unknown form.
        NotApplicableError: the host drives no NVIDIA GPU.
    """
    driven = nvidia_gpus(pci_gpus(captures.need("pci")))
    capture = captures["states"]
    lost = tuple(_said(capture, _NO_HANDLE))
    if capture.problem and not lost and not _ended_with_a_document(capture):
        raise CollectError(capture.target, capture.shown, _named(capture.problem))
    if capture.truncated:
        too_large = Problem(kind=ProblemKind.TOO_LARGE, detail="the answer of nvidia-smi is too large to be kept")
        raise CollectError(capture.target, capture.shown, too_large)
    root = document(capture)
    if root is None:
        return _nothing(capture, lost)
    if root.name != "nvidia_smi_log":
        raise ParseError(root.evidence, "<nvidia_smi_log>")
    gpus = tuple(gpu_state(element, index) for index, element in enumerate(root.all("gpu")))
    unlisted = () if lost else tuple(_unlisted(root, driven, _excluded(captures["gpus"])))
    corrupted = tuple(_said(capture, _CORRUPTED))
    unexplained = capture.problem if not (lost or corrupted) else None
    return GpuStates(
        driver=words(root.find("driver_version")),
        gpus=gpus,
        lost=(*lost, *unlisted),
        corrupted=corrupted,
        unseen=(unexplained,) if unexplained else (),
    )


def _ended_with_a_document(capture: Capture) -> bool:
    """nvidia-smi can end with an error about one GPU when it has told everything of all."""
    failed = capture.problem is not None and capture.problem.kind is ProblemKind.FAILED
    return failed and b"</nvidia_smi_log>" in capture.out[-2000:]


def _nothing(capture: Capture, lost: tuple[SaidOfGpu, ...]) -> GpuStates:
    if lost:
        return GpuStates(driver=None, gpus=(), lost=lost, corrupted=(), unseen=(_UNTOLD,))
    said = next(iter(messages(capture)), capture.first()).text.strip()[:200]
    raise CollectError(capture.target, capture.shown, Problem(kind=ProblemKind.FAILED, detail=said or "no output"))


def _named(problem: Problem) -> Problem:
    if "nvidia-smi is not installed" not in problem.detail:
        return problem
    hint = "It comes with the driver's user space (Debian: nvidia-smi), of the version of the kernel module."
    return Problem(kind=ProblemKind.COMMAND_MISSING, detail="nvidia-smi is not installed", hint=hint)


_UNTOLD = Problem(
    kind=ProblemKind.UNSEEN,
    detail="nvidia-smi ended before it had listed any GPU, so the others were not seen",
    hint="Ask for a single one: nvidia-smi -q -i UUID",
)


def _said(capture: Capture, pattern: re.Pattern[str]) -> Iterator[SaidOfGpu]:
    for line in messages(capture):
        if match := pattern.match(line.text):
            yield SaidOfGpu(bus_id=bus_id(match["gpu"]), said=match["said"].strip()[:200], evidence=line.evidence)


def _unlisted(root: Element, driven: tuple[PciGpu, ...], excluded: frozenset[tuple[int, ...]]) -> Iterator[SaidOfGpu]:
    listed = {address(bus_id(element.identity)) for element in root.all("gpu") if _BUS_ID.fullmatch(element.identity)}
    for gpu in driven:
        if gpu.driver == "nvidia" and address(gpu.bus_id) not in listed | excluded:
            yield SaidOfGpu(bus_id=gpu.bus_id, said="bound to the driver, but not listed", evidence=gpu.evidence)


def _excluded(capture: Capture) -> frozenset[tuple[int, ...]]:
    """The GPUs that the driver was told to leave alone: nvidia-smi does not show them."""
    told = [path for path, lines in capture.files().items() if any(_EXCLUDED.match(line.text) for line in lines)]
    places = (path.split("/")[-2] for path in told)
    return frozenset(address(place) for place in places if _BUS_ID.fullmatch(place))


_ID = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_BUS_ID = re.compile(_ID, re.ASCII)
_NO_HANDLE = re.compile(
    rf"\s*Unable to determine the device handle for (?:gpu)?\s*[0-9]*:?\s*(?P<gpu>{_ID}): (?P<said>.*)", re.IGNORECASE
)
_CORRUPTED = re.compile(rf"\s*WARNING: (?P<said>infoROM is corrupted) at gpu (?P<gpu>{_ID})", re.ASCII)
_EXCLUDED = re.compile(r"GPU Excluded:\s*Yes")
