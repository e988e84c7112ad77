"""Measures what the other tasks of a run are worth to the first picks for a GPU: whole runs,
replayed on recorded measurements of others, without a device and without a download.

    python -m benchmarks.tuning.gpu_other_tasks DIRECTORY [--draws 2] [--pool 64]

DIRECTORY has the logs of `benchmarks.tuning.gpu_first_picks`, which names where they come from. A
run is that of a model (a log is named after its model): its tasks take turns, in random order, and
each measures a batch of 8 in a turn, of 64 candidates drawn at random. A search ranks them by
analysis, then by the task's own times. The other ways learn from the tasks that had their turn,
too. Columns are the best time of the 64 over the best that was measured after one batch and after
two, means over tasks and draws; 1 is the best. The last columns are the differences to the
analysis, in points of 0.01, with 95% intervals over tasks by bootstrap.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from research.experience.judging.tasks_in_turn import WAYS, replayed

from benchmarks.kit.command import command_line
from benchmarks.kit.tables import heading, row
from benchmarks.tuning.gpu_first_picks import experience_of, logged_tasks
from tunegate.tune.prior import TaskExperience

_BATCHES, _BOOTSTRAPS = 2, 2000
_LEAST_CANDIDATES = 32
"""Of a task that is judged: with fewer of them the first batches have nearly all."""


def main() -> None:
    options = command_line(__doc__, ("directory", Path), draws=2, pool=64, first=48)
    runs = [
        replayed(tasks, options.pool, options.draws, _BATCHES, WAYS)
        for tasks in models(options.directory, options.first)
    ]
    heading("ranked by | tasks | after 8 | after 16 | after 8, points | after 16, points")
    analysis = np.concatenate([each["analysis"] for each in runs])
    for way in WAYS:
        reached = np.concatenate([each[way] for each in runs])
        means = [f"{mean:.3f}" for mean in reached.mean(axis=0)]
        gains = (reached - analysis).T
        told = ["" if way == "analysis" else interval(100 * gain) for gain in gains]
        row(way, len(reached), *means, *told)


def models(folder: Path, first: int) -> Iterable[list[TaskExperience]]:
    """The tasks of each model that the logs are of."""
    names: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(folder.rglob("*.json")):
        names[file.name].append(file)
    for files in names.values():
        tasks = [experience_of(task) for task in logged_tasks(files, first)]
        yield [task for task in tasks if len(task.rows) >= _LEAST_CANDIDATES]


def interval(differences: np.ndarray) -> str:
    rng = np.random.default_rng(0)
    means = rng.choice(differences, (_BOOTSTRAPS, len(differences))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return f"{differences.mean():+.1f} ({low:+.1f} to {high:+.1f})"


if __name__ == "__main__":
    main()
