"""Errors of a GPU's memory, and what is left to repair them with."""

from __future__ import annotations

from gapline.agents.host.smi.document import Element
from gapline.agents.host.smi.fact import Errors
from gapline.agents.host.smi.value import count, switch

# Element names, and how the repair that waits, or is no longer possible, is called.
_PENDING = (
    (("remapped_rows", "remapped_row_pending"), "row remapping"),
    (("retired_pages", "pending_retirement"), "page retirement"),
    (("retired_pages", "pending_blacklist"), "page retirement"),
    (("ecc_errors", "channel_repair_pending"), "channel repair"),
    (("ecc_errors", "tpc_repair_pending"), "TPC repair"),
)
_FAILED = (
    (("remapped_rows", "remapped_row_failure"), "row remapping failed"),
    (("ecc_errors", "unrepairable_memory"), "memory that cannot be repaired"),
    (("ecc_errors", "aggregate", "sram_threshold_exceeded"), "too many errors in SRAM"),
)
# Counters of uncorrected errors: one for SRAM until driver 545, two since; `device_memory` and others are older still.
_UNCORRECTED = ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")
_CORRECTED = ("sram_correctable", "dram_correctable")


def memory_errors(gpu: Element) -> Errors:
    """What the GPU tells of its memory.

    Raises:
        ParseError: a counter or a switch has an unknown form.
    """
    pending = [(name, one) for path, name in _PENDING if (one := gpu.find(*path)) and switch(one)]
    failed = [(name, one) for path, name in _FAILED if (one := gpu.find(*path)) and switch(one)]
    volatile = [one for name in _UNCORRECTED if (one := gpu.find("ecc_errors", "volatile", name))]
    rows = [gpu.find("remapped_rows", f"remapped_row_{kind}") for kind in ("unc", "corr")]
    low = [_bank(gpu, kind) for kind in ("low", "none")]
    pages = [gpu.find("retired_pages", f"{kind}_retirement", "retired_count") for kind in _PAGES]
    noted = (*volatile, *rows, *low, *pages)
    return Errors(
        ecc=switch(gpu.find("ecc_mode", "current_ecc")),
        ecc_pending=switch(gpu.find("ecc_mode", "pending_ecc")),
        uncorrected=_sum(volatile),
        corrected=_sum([gpu.find("ecc_errors", "volatile", name) for name in _CORRECTED]),
        uncorrected_ever=_sum([gpu.find("ecc_errors", "aggregate", name) for name in _UNCORRECTED]),
        rows_uncorrected=count(rows[0]),
        rows_corrected=count(rows[1]),
        pages_retired=_sum(pages),
        banks_low=_sum(low, "bank(s)"),
        pending=tuple(dict.fromkeys(name for name, _ in pending)),
        failed=tuple(name for name, _ in failed),
        evidence=(
            *(one.evidence for _, one in (*failed, *pending)),
            *(one.evidence for one in noted if one is not None and _counts(one)),
        ),
    )


_PAGES = ("multiple_single_bit", "double_bit")


def _bank(gpu: Element, kind: str) -> Element | None:
    return gpu.find("remapped_rows", "row_remapper_histogram", f"row_remapper_histogram_{kind}")


def _sum(elements: list[Element | None] | list[Element], unit: str = "") -> int | None:
    """None when no counter has a value."""
    values = [value for one in elements if (value := count(one, unit)) is not None]
    return sum(values) if values else None


def _counts(element: Element) -> bool:
    return element.text.split(" ")[0] not in {"0", "N/A", ""}
