"""`tunegate experience evaluate`: regrets of first picks, and of picks after few measurements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tunegate.cli.commands.experience.evaluate import EvaluateOptions
from tunegate.commands.experience.data_files import measured_tasks
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.cost_model.judging.evaluation import WayRegret, way_regrets
from tunegate.cost_model.judging.rankers import ADAPTED_TREES, TREES
from tunegate.errors import PASS, ConfigError

_COLUMNS = ("ranked by", "picks", "tasks", "median", "95% interval", "geometric mean")


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    tasks: int
    measurements: int
    judged: tuple[WayRegret, ...]


def run(options: EvaluateOptions) -> int:
    """Prints how much time is lost by each way to pick. Raises ConfigError or ArtifactError."""
    tasks = measured_tasks(options.files)
    judged = way_regrets(tasks, TREES, ADAPTED_TREES)
    if not judged:
        raise ConfigError(
            "experience evaluate: all tasks share a layer or a model, so nothing can be left out. "
            "Add tasks of another model."
        )
    rows = sum(len(task.rows) for task in tasks)
    if options.settings.as_json:
        write_json(Evaluation(tasks=len(tasks), measurements=rows, judged=judged))
        return PASS
    show_lines([f"{len(tasks)} tasks, {rows} measurements. Best time of the picks over the best:"])
    show_table("", _COLUMNS, _rows(judged))
    return PASS


def _rows(judged: Sequence[WayRegret]) -> Iterator[tuple[object, ...]]:
    for each in sorted(judged, key=lambda one: (one.shots, one.picks, one.mean)):
        picks = f"{each.shots} random + {each.picks - each.shots}" if each.shots else each.picks
        interval = f"{each.low:.2f} to {each.high:.2f}"
        yield (each.way, picks, each.tasks, f"{each.median:.2f}", interval, f"{each.mean:.2f}")
