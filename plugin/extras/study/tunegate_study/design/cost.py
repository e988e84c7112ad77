"""The machine time of a study, estimated before anything is spent, and how much of it a budget
covers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tunegate_study.design.measured import MODEL, PRECISION, RUNTIME, TUNING, as_key, without
from tunegate_study.studies import CellSetting

_COMPILE_SECONDS, _SAVE_SECONDS = 25.0, 6.0
_TRIAL_SECONDS = 0.7
_LAUNCH_SECONDS = 3.0


def estimated_seconds(
    cells: Sequence[CellSetting], compilers: Collection[str], rounds: int
) -> float:
    """Returns the time of builds, trials (once for all cells built with them) and launches of these
    cells. `compilers` are the runtimes that tune."""
    models = {cell[MODEL] for cell in cells}
    tuned = {
        as_key(without(cell, (RUNTIME, PRECISION))): trials_of(cell)
        for cell in cells
        if cell[RUNTIME] in compilers
    }
    builds = [_COMPILE_SECONDS if cell[RUNTIME] in compilers else _SAVE_SECONDS for cell in cells]
    launches = rounds * len(cells) * _LAUNCH_SECONDS
    trials = sum(tuned.values()) * _TRIAL_SECONDS
    return sum(builds) + launches + trials + len(models) * _SAVE_SECONDS


def cells_paid(
    cells: Sequence[CellSetting], compilers: Collection[str], rounds: int, seconds: float
) -> int:
    """Returns how many of these cells fit into `seconds`, at their average time."""
    every = estimated_seconds(cells, compilers, rounds)
    return len(cells) if every <= seconds else int(len(cells) * seconds / every)


def trials_of(setting: CellSetting) -> int:
    return int(setting[TUNING]) if setting[TUNING].isdecimal() else 0
