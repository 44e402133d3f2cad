"""The raw lines a claim rests on, in the order of their sources, with the lines around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gapline.orchestrator.model.capture import EVIDENCE_WIDTH, Line
from gapline.orchestrator.model.evidence import Evidence
from gapline.reports.view.allowance import Allowance, size
from gapline.reports.visible import clipped

Context = Callable[[str, str, int], Iterable[Line]]
"""Gives the lines around a cited one: target, source and line number in, a few lines of that source out."""

_MARKUP = 60  # bytes of markup around each line


def no_context(_target: str, _source: str, _line: int) -> tuple[Line, ...]:
    """For a run without its snapshot: cited lines only."""
    return ()


@dataclass(frozen=True, slots=True)
class ExcerptLine:
    """One line of an excerpt. `number` is None where the source has no lines to count."""

    number: int | None
    text: str
    cited: bool
    after_gap: bool  # lines were left out before it


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What one finding cites from one source."""

    target: str
    source: str
    lines: tuple[ExcerptLine, ...]

    @property
    def cited(self) -> tuple[ExcerptLine, ...]:
        """Without the lines around."""
        return tuple(line for line in self.lines if line.cited)


def excerpts(evidence: tuple[Evidence, ...], context: Context, allowance: Allowance) -> tuple[Excerpt, ...]:
    """The evidence by target and source. Lines around are the first thing that an exhausted allowance leaves out."""
    by_source: dict[tuple[str, str], list[Evidence]] = {}
    for line in evidence:
        by_source.setdefault((line.target, line.source), []).append(line)
    return tuple(
        Excerpt(target, source, _lines(cited, context, allowance)) for (target, source), cited in by_source.items()
    )


def _lines(cited: list[Evidence], context: Context, allowance: Allowance) -> tuple[ExcerptLine, ...]:
    texts = {line.line: clipped(line.text, EVIDENCE_WIDTH) for line in cited if line.line is not None}
    around = _around(cited, context)
    if around and allowance.take(cited[0].target, size(around.values()) + _MARKUP * len(around)):
        numbered = sorted((around | texts).items())
    else:
        numbered = sorted(texts.items())
    whole = (clipped(line.text, EVIDENCE_WIDTH) for line in cited if line.line is None)
    before = [number for number, _ in (*numbered[:1], *numbered)]
    return (
        *(ExcerptLine(number=None, text=text, cited=True, after_gap=False) for text in whole),
        *(
            ExcerptLine(number=number, text=text, cited=number in texts, after_gap=number - previous > 1)
            for previous, (number, text) in zip(before, numbered, strict=False)
        ),
    )


def _around(cited: list[Evidence], context: Context) -> dict[int, str]:
    return {
        near.number: clipped(near.text, EVIDENCE_WIDTH)
        for line in cited
        if line.line is not None
        for near in context(line.target, line.source, line.line)
    }
