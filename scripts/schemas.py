"""Writes docs/schema/*.json from the models, so that what others read is what is checked.

`python scripts/schemas.py` writes them; with `--check` it only says which differ, and ends with 1 if one does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from gapline.orchestrator.model.run import Run
from gapline.orchestrator.remerge import Changes
from gapline.orchestrator.snapshot.layout import Manifest

FOLDER = Path(__file__).parent.parent / "docs" / "schema"
MODELS: dict[str, type[BaseModel]] = {"run-1": Run, "rerun-1": Changes, "snapshot-1": Manifest}


def text(name: str) -> str:
    """The JSON Schema of a document, as it is committed."""
    schema = MODELS[name].model_json_schema(by_alias=True, mode="serialization")
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=1) + "\n"


def differing() -> list[Path]:
    """The files that are not what the models say."""
    paths = {name: FOLDER / f"{name}.json" for name in MODELS}
    return [path for name, path in paths.items() if not path.is_file() or path.read_text() != text(name)]


def main() -> int:
    """Write or check; the exit status."""
    different = differing()
    if "--check" in sys.argv[1:]:
        for path in different:
            sys.stderr.write(f"{path} is not what the models say: run scripts/schemas.py\n")
        return int(bool(different))
    for path in different:
        path.write_text(text(path.stem))
    return 0


if __name__ == "__main__":
    sys.exit(main())
