"""Names of places in the page. They come from us alone: ids in a run may hold anything, and hold it twice."""

from __future__ import annotations

import re

from gapline.orchestrator.model.run import ReportedFinding, Run

_FINGERPRINT = re.compile(r"[0-9a-f]{16}")


class Anchors:
    """The anchor of every target and finding of one run."""

    __slots__ = ("_findings", "_targets")

    def __init__(self, run: Run) -> None:
        self._targets = {target.id: f"t-{number}" for number, target in enumerate(run.targets, start=1)}
        self._findings: dict[int, str] = {}
        taken: set[str] = set()
        for number, finding in enumerate((one for entry in run.outcomes for one in entry.findings), start=1):
            anchor = _of_fingerprint(finding.fingerprint)
            self._findings[id(finding)] = f"f-{number}" if anchor is None or anchor in taken else anchor
            taken.add(self._findings[id(finding)])

    def of_target(self, target: str) -> str | None:
        """None for an outcome's target that the run does not list."""
        return self._targets.get(target)

    def of_finding(self, finding: ReportedFinding) -> str:
        """The same in every report of the same finding, where its fingerprint is well formed and occurs once."""
        return self._findings[id(finding)]


def _of_fingerprint(fingerprint: str) -> str | None:
    return f"f-{fingerprint}" if _FINGERPRINT.fullmatch(fingerprint) else None
