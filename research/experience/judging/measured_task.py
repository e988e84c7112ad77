"""A measured task as cost models see it: numbers alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunegate.tune.prior import TaskExperience, columns_of


class MeasuredTask(NamedTuple):
    """A row of columns for each candidate, and its time."""

    columns: np.ndarray
    milliseconds: np.ndarray


def in_columns(task: TaskExperience) -> MeasuredTask:
    times = [milliseconds for _, milliseconds, _ in task.rows]
    return MeasuredTask(np.array(columns_of(task), dtype=np.float32), np.array(times))
