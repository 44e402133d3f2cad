"""The HTML report: one file that asks nothing of anybody.

No script, no request, no font from elsewhere; a content security policy in the page forbids all three. Whatever a
target said passes two gates on its way into the page, both set once for every template: jinja's escaping, and
`visible`, which gives invisible characters a shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources

from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined
from markupsafe import Markup

from gapline.orchestrator.model.run import Run
from gapline.reports.view.evidence import Context, no_context
from gapline.reports.view.page import page
from gapline.reports.view.words import counted
from gapline.reports.visible import clipped, visible

_BUFFER = 200  # template pieces per chunk of a stream
_LONGEST = 2_500  # characters; everything that may be long is cut well before, this catches names


def render(run: Run, context: Context = no_context) -> str:
    """The report of a run as one document; arguments as for `stream`.

    `context` gives the lines around a cited one from the snapshot; without it the cited lines stand alone.
    """
    return "".join(stream(run, context))


def stream(run: Run, context: Context = no_context, compiled: str | None = None) -> Iterator[str]:
    """The same in pieces, to be written one after the other; findings and targets are made as they are needed.

    `compiled` names a directory of the user's own in which compiled templates may be kept between commands.
    """
    pieces = _environment(compiled).get_template("page.html.j2").stream(page=page(run, context))
    pieces.enable_buffering(_BUFFER)
    yield from pieces


@cache
def _environment(compiled: str | None) -> Environment:
    environment = Environment(
        bytecode_cache=FileSystemBytecodeCache(compiled) if compiled is not None else None,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        loader=FunctionLoader(_load),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["counted"] = counted
    return environment


def _finalize(value: object) -> object:
    """Runs on every value that a template prints. Markup comes from our own macros only."""
    return visible(clipped(value, _LONGEST)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _load(name: str) -> str:
    """A template or the style sheet, from wherever the package is installed."""
    folder = resources.files("gapline.reports")
    return (folder / name if name == "style.css" else folder / "templates" / name).read_text(encoding="utf-8")
