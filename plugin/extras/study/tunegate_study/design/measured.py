"""Measured cells, for the statistics."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tunegate_study.design.contrasts import Sample, sample_of
from tunegate_study.studies import CellSetting, StudyCell

MODEL, VARIANT, TARGET, THREADS = "model", "variant", "target", "threads"
RUNTIME, PRECISION, LAYOUT, TUNING = "runtime", "precision", "layout", "tuning"
ALGORITHM = "algorithm"


class MeasuredCell(msgspec.Struct, frozen=True):
    """A setting with the logarithm of its time, in two ways: `paired` is relative to the reference
    of its model, measured beside it; `alone` has the machine's scatter, too. If another setting was
    measured instead, `stand_in` is that one."""

    setting: CellSetting
    paired: Sample
    alone: Sample
    operations: float | None = None
    stand_in: CellSetting | None = None

    @property
    def origin(self) -> tuple[tuple[str, str], ...]:
        """Returns the setting that was launched."""
        return as_key(self.setting if self.stand_in is None else self.stand_in)


def measured_cells(cells: Sequence[StudyCell]) -> tuple[MeasuredCell, ...]:
    """Returns the cells with at least two launches."""
    scales = _reference_scales(cells)
    found = []
    for cell in cells:
        scale = scales.get(_place(cell), 0.0)
        paired = sample_of([scale + launch.effect for launch in cell.launches])
        alone = sample_of([math.log(launch.ms) for launch in cell.launches])
        if paired is not None and alone is not None:
            found.append(MeasuredCell(cell.setting, paired, alone, cell.operations))
    return tuple(found)


def without(setting: Mapping[str, str], names: Iterable[str]) -> CellSetting:
    """Returns the setting of the other axes."""
    left = set(names)
    return {axis: level for axis, level in setting.items() if axis not in left}


def as_key(setting: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(setting.items()))


def _reference_scales(cells: Sequence[StudyCell]) -> dict[tuple[str, str], float]:
    """Returns the logarithm of the reference's time by model and machine: one number, so that a
    difference of two cells has only the scatter of their own launches."""
    times: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        times.setdefault(_place(cell), []).extend(each.reference_ms for each in cell.launches)
    return {place: math.log(statistics.median(each)) for place, each in times.items() if each}


def _place(cell: StudyCell) -> tuple[str, str]:
    return cell.setting.get(MODEL, ""), cell.device.name if cell.device else ""
