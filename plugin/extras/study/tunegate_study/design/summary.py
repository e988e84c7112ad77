"""Summarizes measured cells as a study: effects, flips, fronts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tunegate_study.design.effects import Estimates, main_effects, pair_effects
from tunegate_study.design.fronts import fronts
from tunegate_study.design.measured import MeasuredCell, as_key, measured_cells
from tunegate_study.design.operations import slower_with_less
from tunegate_study.design.rank_flips import rank_flips
from tunegate_study.studies import Axis, CellSetting, Study, StudyCell, StudyDesign

_NEARLY_FULL = 0.75
"""The share of all possible cells from which their own means are better than a fit."""


class StudiedCells(msgspec.Struct, frozen=True, kw_only=True):
    """The subject of a study: its file, the chosen cells, and the settings that they stand for."""

    file: str
    rounds: int
    design: StudyDesign
    repeats: tuple[tuple[CellSetting, CellSetting], ...]
    environment: dict[str, str] = {}


def summarize(subject: StudiedCells, cells: Sequence[StudyCell], commands: Sequence[str]) -> Study:
    """Returns the study as far as its cells are measured; `commands` has one per cell."""
    measured = measured_cells(cells)
    axes = _measured_axes(subject.design, measured)
    is_full = len(measured) >= _NEARLY_FULL * subject.design.possible
    ranked = _add_repeats(measured, subject.repeats)
    estimates = None
    if measured:
        estimates = Estimates(axes, ranked if is_full else measured, is_full=is_full)
    return Study(
        file=subject.file,
        rounds=subject.rounds,
        design=subject.design,
        cells=tuple(cells),
        commands=tuple(commands),
        main_effects=main_effects(axes, estimates) if estimates else (),
        pair_effects=pair_effects(axes, estimates) if estimates else (),
        rank_flips=rank_flips(axes, ranked),
        slower_with_less=slower_with_less(measured),
        fronts=fronts(cells),
        unfinished=sum(not is_finished(cell, subject.rounds) for cell in cells),
        environment=subject.environment,
    )


def is_finished(cell: StudyCell, rounds: int) -> bool:
    """Returns whether another run would not, or cannot, measure the cell."""
    return bool(cell.reason) or len(cell.launches) >= rounds


def _measured_axes(design: StudyDesign, cells: Sequence[MeasuredCell]) -> list[Axis]:
    """Returns the axes with the levels that have a measurement."""
    seen = {axis.name: {cell.setting[axis.name] for cell in cells} for axis in design.axes}
    found = []
    for axis in design.axes:
        levels = tuple(level for level in axis.levels if level in seen[axis.name])
        found.append(Axis(name=axis.name, levels=levels or axis.levels[:1]))
    return found


def _add_repeats(
    cells: Sequence[MeasuredCell], repeats: Sequence[tuple[CellSetting, CellSetting]]
) -> list[MeasuredCell]:
    """Returns the cells, repeated for each setting that they stand for: a runtime that tuning does
    not change can still be beaten by a tuned one."""
    known = {as_key(cell.setting): cell for cell in cells}
    again = [
        msgspec.structs.replace(known[as_key(stand_in)], setting=setting, stand_in=stand_in)
        for setting, stand_in in repeats
        if as_key(stand_in) in known
    ]
    return [*cells, *again]
