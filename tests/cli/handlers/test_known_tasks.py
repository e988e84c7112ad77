from __future__ import annotations

from pathlib import Path

from tests.support.workspace import Workspace
from tunegate.cli.handlers.doctor_checks import known_tasks
from tunegate.project import open_project
from tunegate.settings import Settings


def test_the_tasks_of_the_first_models_are_counted_and_nothing_is_written(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    settings = Settings(repository=workspace.root)
    project = open_project(settings)
    (found,) = known_tasks(project, settings, most=1)
    assert (found.model, found.target, found.known) == ("models/m.onnx", "cpu", 0)
    assert found.tasks > 0
    assert known_tasks(project, settings, most=0) == ()
    assert not (workspace.root / ".tunegate").exists()
