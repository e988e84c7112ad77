"""The tables of a study."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from tunegate.report.table import (
    ChangeInterval,
    Column,
    Identifier,
    ReportTable,
    number_column,
    text_column,
)
from tunegate.report.units import NONE, energy, percent, size
from tunegate.wording import milliseconds
from tunegate_study.design.cell_energy import cell_energy
from tunegate_study.design.measured import ALGORITHM
from tunegate_study.studies import (
    Axis,
    FrontCell,
    LeftOut,
    MainEffect,
    PairEffect,
    RankFlip,
    SlowerWithLess,
    Study,
    StudyCell,
)


def axes_table(study: Study) -> ReportTable:
    columns: tuple[Column[Axis], ...] = (
        text_column("Axis", lambda axis: axis.name),
        text_column("Levels", lambda axis: ", ".join(axis.levels)),
    )
    return ReportTable(columns, study.design.axes)


def effects_table(study: Study) -> ReportTable:
    columns: tuple[Column[MainEffect], ...] = (
        text_column("Axis", lambda effect: effect.axis),
        text_column("Level", lambda effect: f"{effect.level} against {effect.against}"),
        number_column("Time", lambda effect: ChangeInterval(effect.percent)),
        text_column("Clear", lambda effect: "yes" if effect.is_clear else "no"),
        number_column("Settings", lambda effect: str(effect.settings or NONE)),
    )
    return ReportTable(columns, study.main_effects)


def pairs_table(study: Study) -> ReportTable:
    columns: tuple[Column[PairEffect], ...] = (
        text_column("Pair", lambda effect: " and ".join(effect.axes)),
        text_column("Levels", _pair_levels),
        number_column("Beyond adding up", lambda effect: ChangeInterval(effect.percent)),
        number_column("Settings", lambda effect: str(effect.settings or NONE)),
    )
    return ReportTable(columns, study.pair_effects)


def flips_table(flips: Sequence[RankFlip]) -> ReportTable:
    columns: tuple[Column[RankFlip], ...] = (
        text_column("Changes", lambda flip: f"{flip.axis}: {flip.levels[0]} to {flip.levels[1]}"),
        text_column("Best before", lambda flip: _values(flip.best[0], flip.ranked)),
        number_column("Faster by", lambda flip: percent(flip.faster_percent[0])),
        text_column("Best after", lambda flip: _values(flip.best[1], flip.ranked)),
        number_column("And by", lambda flip: percent(flip.faster_percent[1])),
        text_column("All else", lambda flip: ", ".join(flip.setting.values())),
    )
    return ReportTable(columns, flips)


def operations_table(study: Study) -> ReportTable:
    columns: tuple[Column[SlowerWithLess], ...] = (
        text_column("Computes less", lambda row: Identifier(row.fewer)),
        text_column("Than", lambda row: Identifier(row.more)),
        number_column("Operations", lambda row: percent(row.operations_percent)),
        number_column("Time", lambda row: ChangeInterval(row.time_percent)),
        text_column("In", lambda row: ", ".join(row.setting.values())),
    )
    return ReportTable(columns, study.slower_with_less)


def fronts_table(study: Study) -> ReportTable:
    axes = varying(study)
    columns: tuple[Column[FrontCell], ...] = (
        *(_level(axis) for axis in axes),
        number_column("Time", lambda cell: milliseconds(cell.ms)),
        number_column("Error", lambda cell: _error(cell.error_percent)),
        number_column("Size", lambda cell: size(cell.size_bytes)),
        number_column("Memory", lambda cell: size(cell.memory_bytes)),
        number_column("Energy", lambda cell: energy(cell.joules)),
    )
    return ReportTable(columns, study.fronts)


def left_out_table(study: Study) -> ReportTable:
    columns: tuple[Column[LeftOut], ...] = (
        text_column("Why", lambda left: left.reason),
        number_column("Settings", lambda left: str(left.count)),
    )
    return ReportTable(columns, study.design.left_out)


def cells_table(study: Study) -> ReportTable:
    axes = varying(study)
    rows = list(zip(study.cells, study.commands, strict=True))
    columns: tuple[Column[tuple[StudyCell, str]], ...] = (
        *(text_column(_title(axis), _level_of_cell(axis)) for axis in axes),
        number_column("Time", lambda row: milliseconds(_median([x.ms for x in row[0].launches]))),
        number_column("Of the reference", lambda row: _ratio(row[0])),
        number_column("Error", lambda row: _error(row[0].error.center if row[0].error else 0.0)),
        number_column("Size", lambda row: size(row[0].size_bytes) if row[0].digest else NONE),
        number_column("Memory", lambda row: _memory(row[0])),
        number_column("Energy", lambda row: energy(cell_energy(row[0]).joules)),
        number_column("Trials", lambda row: str(row[0].trials or NONE)),
        *_layers(axes),
        text_column("Command", lambda row: row[0].reason or Identifier(row[1])),
    )
    return ReportTable(columns, rows)


def varying(study: Study) -> list[str]:
    """Returns the axes with at least two levels."""
    return [axis.name for axis in study.design.axes if len(axis.levels) > 1]


def _layers(axes: Sequence[str]) -> tuple[Column[tuple[StudyCell, str]], ...]:
    """Returns the column of the layers in the requested form, if forms are compared."""
    column: Column[tuple[StudyCell, str]] = number_column(
        "Layers", lambda row: str(row[0].layers or NONE)
    )
    return (column,) if ALGORITHM in axes else ()


def _memory(cell: StudyCell) -> str:
    found = _median([launch.peak_bytes for launch in cell.launches])
    return size(int(found)) if found else NONE


def _level(axis: str) -> Column[FrontCell]:
    return text_column(_title(axis), lambda cell: cell.setting[axis])


def _level_of_cell(axis: str) -> Callable[[tuple[StudyCell, str]], str]:
    return lambda row: row[0].setting[axis]


def _title(axis: str) -> str:
    return axis.capitalize()


def _pair_levels(effect: PairEffect) -> str:
    both = zip(effect.levels, effect.against, strict=True)
    return "; ".join(f"{level} against {against}" for level, against in both)


def _values(setting: Mapping[str, str], ranked: Sequence[str]) -> str:
    return ", ".join(setting[axis] for axis in ranked)


def _error(error_percent: float) -> str:
    return f"{error_percent:.3g}%" if error_percent else NONE


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _ratio(cell: StudyCell) -> str:
    ratios = [launch.ms / launch.reference_ms for launch in cell.launches]
    return f"{statistics.median(ratios):.2f}" if ratios else NONE
