"""What a run was asked for, kept beside it so that it can be asked again."""

from __future__ import annotations

import json
from pathlib import Path

from gapline.orchestrator.cli.selection import DEFAULT_FLEET, Selection
from gapline.orchestrator.model.errors import SnapshotError
from gapline.orchestrator.run_folder import RunFolder

_FILE = "request.json"


def keep(selection: Selection, folder: RunFolder) -> None:
    """Write it into the run's directory; the fleet file by its absolute path."""
    fleet = selection.fleet or (DEFAULT_FLEET if DEFAULT_FLEET.is_file() else None)
    request = {
        "targets": selection.targets,
        "fleet": str(fleet.resolve()) if fleet is not None else None,
        "playbook": str(Path(selection.playbook).resolve())
        if Path(selection.playbook).is_file()
        else selection.playbook,
        "agents": selection.agents,
        "fail_on": selection.fail_on,
        "allow_init": selection.allow_init,
    }
    path = folder.path / _FILE
    path.touch(mode=0o600)
    path.write_text(json.dumps(request, indent=1) + "\n", encoding="utf-8")


def recall(folder: RunFolder) -> Selection:
    """The request of a run.

    Raises:
        SnapshotError: it is not there or damaged, so that nobody knows how to reach the targets.
    """
    path = folder.path / _FILE
    try:
        said = json.loads(path.read_bytes())
        return Selection(
            targets=tuple(said["targets"]),
            fleet=Path(said["fleet"]) if said["fleet"] is not None else None,
            playbook=said["playbook"],
            agents=tuple(said["agents"]),
            fail_on=said["fail_on"],
            allow_init=said["allow_init"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else f"is damaged: {type(error).__name__}"
        hint = (
            "Audit again; a replayed run, or one that was copied without this file, says of no machine how to reach it."
        )
        raise SnapshotError(f"{path}: {why}", hint=hint) from error
