"""What machines that are meant to be alike share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from gapline.orchestrator.model.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """One value of a host or of one of its GPUs that its peers are expected to have, too.

    Never what legitimately differs: names, addresses, serial numbers, counters, loads, times.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    subject: str = ""  # empty for the host itself, else the bus id of a GPU
    name: str  # "kernel release": stands within a sentence, and in the finding's fingerprint
    value: str  # as a person would write it, with its unit
    among: str = ""  # only those who are equal in this are peers: "NVIDIA H200", the model of a board
    evidence: Evidence
