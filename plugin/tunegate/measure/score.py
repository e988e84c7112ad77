"""The user's own metric of both sides, beside latency."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build, CellBuilds
from tunegate.artifacts.measurements import CellMeasurement, MeasurementRun, Metric
from tunegate.errors import MeasurementError
from tunegate.ports import Progress, Scorer

_NOT_SCORED = {"identical", "error"}
"""Cells without a score: nothing differs, or there is nothing to score."""


def scored(
    run: MeasurementRun, *, out: Path, scorer: Scorer | None, progress: Progress
) -> MeasurementRun:
    """Returns every cell with its metric. A command that fails is that cell's problem."""
    if scorer is None:
        return run
    cells = [_cell(cell, run.builds, out, scorer, progress) for cell in run.cells]
    return msgspec.structs.replace(run, cells=tuple(cells))


def _cell(
    measured: CellMeasurement,
    builds: Sequence[CellBuilds],
    out: Path,
    scorer: Scorer,
    progress: Progress,
) -> CellMeasurement:
    built = next((each for each in builds if each.cell == measured.cell), None)
    if measured.stopped in _NOT_SCORED or built is None:
        return measured
    progress.step(f"metric: {measured.cell.model} on {measured.cell.target}")
    try:
        metric = Metric(base=_score(built.base, out, scorer), head=_score(built.head, out, scorer))
    except MeasurementError as error:
        metric = Metric(problem=str(error))
    return msgspec.structs.replace(measured, metric=metric)


def _score(build: Build | None, out: Path, scorer: Scorer) -> float | None:
    if build is None or build.error is not None:
        return None
    return scorer.score((out / build.directory).resolve())
