"""The number of known tasks of each model: the rest is left to `tunegate warm`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from tunegate import pipeline
from tunegate.artifacts.warmed import WarmedModel
from tunegate.edges.output.directory import opened_output
from tunegate.project import Project
from tunegate.settings import Settings
from tunegate.stages.resolve import resolve
from tunegate.tuning.warmed import warmed_models
from tunegate.wiring import opened_tools


def known_tasks(project: Project, settings: Settings, most: int) -> Sequence[WarmedModel]:
    """The first `most` models that are committed, on each target for which something is tuned.
    Nothing is tuned, built or written. Raises TunegateError."""
    found = project.all_models()
    changes = msgspec.structs.replace(found, models=found.models[:most])
    with (
        TemporaryDirectory(prefix="tunegate-doctor-") as place,
        opened_output(Path(place) / "out", "doctor") as out,
        opened_tools(settings, project.checkout(), out) as tools,
    ):
        tasks = pipeline.extracted(tools, changes)
        resolved = resolve(tasks, tools.index, tools.config).tasks
    return warmed_models(resolved, ())
