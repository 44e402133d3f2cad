"""The published schemas are the models'."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from scripts.schemas import FOLDER, MODELS, differing, text

from gapline.orchestrator.remerge import changes, remerge
from gapline.reports import json as run_json
from tests.unit.invented import entry, found, run, unknown


def test_committed_files_are_the_generated_ones() -> None:
    """`python scripts/schemas.py` writes them; none is missing and none is left over."""
    assert differing() == []
    assert {path.stem for path in FOLDER.glob("*.json")} == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_each_is_a_schema_and_described(name: str) -> None:
    """Valid JSON Schema 2020-12, and named in the README."""
    Draft202012Validator.check_schema(json.loads(text(name)))
    assert f"`{name}.json`" in (FOLDER / "README.md").read_text()


def test_documents_fit_their_schemas() -> None:
    """A run with every status, a merged one, and what changed."""
    old = run(found(), unknown(agent="b"), entry(agent="c"))
    new = run(entry())
    runs = Draft202012Validator(json.loads(text("run-1")))
    for document in (old, remerge(old, new)):
        runs.validate(json.loads(run_json.text(document)))
    told = changes(old, new, remerge(old, new))
    Draft202012Validator(json.loads(text("rerun-1"))).validate(json.loads(told.model_dump_json()))


def test_a_document_of_another_form_does_not_fit() -> None:
    """The schema refuses what the reader refuses."""
    document = json.loads(run_json.text(run(entry())))
    validator = Draft202012Validator(json.loads(text("run-1")))
    assert validator.is_valid(document)
    assert not validator.is_valid(document | {"schema": "gapline/run/2"})
    assert not validator.is_valid(document | {"more": 1})
